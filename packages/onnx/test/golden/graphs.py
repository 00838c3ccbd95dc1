"""ONNX files as torch.onnx.export() writes them, with inputs and torch's own results.

Made with torch 1.13.0 (Debian 12: python3-torch 1.13.1+dfsg-4, CPU) and Python 3.11:

    python3 graphs.py

The modules are small, and written in the operations of torchvision's ResNet, and of BERT and GPT-2 in transformers: masks from shapes,
views whose sizes follow from inputs, attention of single operations.
"""

import json
import math
import pathlib

import torch
from torch import nn

directory = pathlib.Path(__file__).parent
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, groups=2)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = Block(4, 8, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 5)

    def forward(self, images):
        x = self.layer1(self.maxpool(torch.relu(self.bn1(self.conv1(images)))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads, self.size = heads, size // heads
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.size) + mask
        context = torch.matmul(nn.functional.softmax(scores, dim=-1), value).permute(0, 2, 1, 3).contiguous()
        return context.view(context.size()[:-2] + (self.heads * self.size,))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.types = nn.Embedding(30, 8, 0), nn.Embedding(12, 8), nn.Embedding(2, 8)
        self.register_buffer("position_ids", torch.arange(12).expand((1, -1)))
        self.norm1, self.norm2 = nn.LayerNorm(8, eps=1e-12), nn.LayerNorm(8, eps=1e-12)
        self.attention = Attention(8, 2)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.pooler, self.classifier = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, input_ids, attention_mask, token_type_ids):
        length = input_ids.size()[1]
        embedded = self.words(input_ids) + self.types(token_type_ids) + self.places(self.position_ids[:, :length])
        x = self.norm1(embedded)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        x = x + self.attention(x, mask)
        x = self.norm2(x + self.down(nn.functional.gelu(self.up(x))))
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(20, 8), nn.Embedding(10, 8)
        self.ln_1, self.ln_2, self.ln_f = (nn.LayerNorm(8) for _ in range(3))
        self.c_attn, self.c_proj, self.c_fc, self.c_out = (
            nn.Parameter(torch.randn(a, b) * 0.3) for a, b in ((8, 24), (8, 8), (8, 32), (32, 8))
        )
        self.bias = nn.Parameter(torch.randn(24) * 0.1)
        self.register_buffer("tril", torch.tril(torch.ones((10, 10), dtype=torch.uint8)).view(1, 1, 10, 10).bool())

    def conv1d(self, x, weight, bias):
        shape = x.size()[:-1] + (weight.size(1),)
        return torch.addmm(bias, x.view(-1, x.size(-1)), weight).view(shape)

    def heads(self, x):
        return x.view(x.size()[:-1] + (2, 4)).permute(0, 2, 1, 3)

    def forward(self, input_ids):
        shape = input_ids.size()
        places = torch.arange(0, shape[-1], dtype=torch.long).unsqueeze(0).view(-1, shape[-1])
        x = self.wte(input_ids) + self.wpe(places)
        query, key, value = self.conv1d(self.ln_1(x), self.c_attn, self.bias).split(8, dim=2)
        query, key, value = self.heads(query), self.heads(key), self.heads(value)
        scores = torch.matmul(query, key.transpose(-1, -2)) / torch.full([], value.size(-1) ** 0.5)
        queries, keys = query.size(-2), key.size(-2)
        causal = self.tril[:, :, keys - queries : keys, :keys]
        scores = torch.where(causal, scores, torch.full([], torch.finfo(scores.dtype).min))
        y = torch.matmul(nn.functional.softmax(scores, dim=-1), value).permute(0, 2, 1, 3).contiguous()
        zeros = torch.zeros(8)
        x = x + self.conv1d(y.view(y.size()[:-2] + (8,)), self.c_proj, zeros)
        h = self.conv1d(self.ln_2(x), self.c_fc, torch.zeros(32))
        h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))
        x = self.ln_f(x + self.conv1d(h, self.c_out, zeros))
        return torch.matmul(x, self.wte.weight.t())


def moved(model):
    """Running statistics and norms that are not those of the start."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
    return model.eval()


ids = torch.tensor([[3, 7, 1, 0], [9, 2, 0, 0], [4, 4, 8, 5]])
cases = {
    "resnet": (ResNet(), {"images": torch.randn(2, 3, 17, 15)}, {"images": {0: "batch"}}),
    "bert": (
        Bert(),
        {"input_ids": ids, "attention_mask": (ids > 0).long(), "token_type_ids": (ids > 4).long()},
        {name: {0: "batch", 1: "length"} for name in ("input_ids", "attention_mask", "token_type_ids")},
    ),
    "gpt2": (Gpt2(), {"input_ids": ids}, {"input_ids": {0: "batch", 1: "length"}}),
}
written = {}
for name, (model, inputs, axes) in cases.items():
    moved(model)
    for opset in (13, 17):
        # Another size than that of the inputs.
        example = tuple(x[:1] if name == "resnet" else x[:1, :3] for x in inputs.values())
        torch.onnx.export(
            model, example, str(directory / f"{name}-{opset}.onnx"), opset_version=opset,
            input_names=list(inputs), output_names=["logits"], dynamic_axes=axes,
        )  # fmt: skip
    with torch.no_grad():
        logits = model(*inputs.values())
    written[name] = {
        "inputs": {key: {"shape": list(x.shape), "values": x.flatten().tolist()} for key, x in inputs.items()},
        "logits": {"shape": list(logits.shape), "values": logits.flatten().tolist()},
    }
(directory / "graphs.json").write_text(json.dumps(written) + "\n")

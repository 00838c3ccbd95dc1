"""Small checkpoints with what the networks that they belong to make of an input, by torch, torchvision and transformers.

Made with torch 2.13.0+cpu, torchvision 0.28.0, transformers 5.18.0, safetensors 0.8.0, Python 3.11:
python checkpoints.py DIRECTORY

Each file has the state dict as the library saves it, and "golden.*": inputs and outputs, images [batch, channels, height,
width]. The networks are narrow, so that the files are small.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

try:
    import torchvision  # noqa: F401
except RuntimeError:
    # A build for another device than torch's lacks its own operators, which no network here uses.
    operators = torch.library.Library("torchvision", "DEF")
    operators.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    for name in ("qnms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"):
        operators.define(f"{name}(Tensor x) -> Tensor")
        operators.define(f"_{name}_backward(Tensor x) -> Tensor")
from torchvision.models import resnet
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2Config,
    GPT2LMHeadModel,
)

directory = Path(sys.argv[1])


def thin(model, factor):
    """A network with 1/factor of the channels everywhere but at its ends."""

    def share(size):
        return size if size < 16 else size // factor

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            out, channels = module.weight.shape[:2]
            module.weight = nn.Parameter(torch.randn(share(out), share(channels), *module.kernel_size))
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            size = share(module.num_features)
            module.weight, module.bias = nn.Parameter(1 + 0.2 * torch.randn(size)), nn.Parameter(0.1 * torch.randn(size))
            module.running_mean, module.running_var = 0.2 * torch.randn(size), 0.5 + torch.rand(size)
        elif isinstance(module, nn.Linear):
            module.weight = nn.Parameter(module.weight[:, : share(module.in_features)])
    return model


def save(name, model, **golden):
    state = {key: value.contiguous().clone() for key, value in model.state_dict().items()}
    tied = {key for key in getattr(model, "_tied_weights_keys", None) or {}}
    state = {key: value for key, value in state.items() if key not in tied}
    tensors = {f"golden.{key}": value.detach().contiguous().clone() for key, value in golden.items()}
    tensors = {key: value.to(torch.uint32) if value.dtype == torch.int64 else value for key, value in tensors.items()}
    save_file(state | tensors, directory / f"{name}.safetensors")


def images(name, model, x):
    evaluated = model.eval()(x)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    trained = model.train()(x)
    model.load_state_dict(before)
    save(name, model, input=x, evaluated=evaluated, trained=trained)


class Cifar(nn.Module):
    """torchvision's blocks as the network of section 4.2 of the paper."""

    def __init__(self):
        super().__init__()
        whole = resnet.ResNet(resnet.BasicBlock, [3, 3, 3, 1], num_classes=10)
        self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        self.bn1, self.layer1, self.layer2, self.layer3 = whole.bn1, whole.layer1, whole.layer2, whole.layer3
        self.fc = nn.Linear(256, 10)

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class Named(nn.Module):
    """Layers under given names, so that states have the names of milesial/Pytorch-UNet."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)


def double_conv(channels, out, middle):
    def half(a, b):
        return nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU()

    return Named(double_conv=nn.Sequential(*half(channels, middle), *half(middle, out)))


class UNet(nn.Module):
    def __init__(self, channels, classes, width, bilinear):
        super().__init__()
        share = 2 if bilinear else 1
        self.inc = double_conv(channels, width, width)
        for level in range(1, 5):
            size = width * 2**level // (share if level == 4 else 1)
            conv = double_conv(width * 2 ** (level - 1), size, size)
            setattr(self, f"down{level}", Named(maxpool_conv=nn.ModuleList([nn.MaxPool2d(2), conv])))
        for level in range(1, 5):
            size = width * 2 ** (5 - level)
            out = size // 2 // (share if level < 4 else 1)
            up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            if not bilinear:
                up = nn.ConvTranspose2d(size, size // 2, 2, stride=2)
            setattr(self, f"up{level}", Named(up=up, conv=double_conv(size, out, size // 2 if bilinear else out)))
        self.outc = Named(conv=nn.Conv2d(width, classes, 1))

    def forward(self, x):
        levels = [self.inc.double_conv(x)]
        for level in range(1, 5):
            pool, conv = getattr(self, f"down{level}").maxpool_conv
            levels.append(conv.double_conv(pool(levels[-1])))
        x = levels.pop()
        for level in range(1, 5):
            part, beside = getattr(self, f"up{level}"), levels.pop()
            x = part.up(x)
            missing = [beside.shape[d] - x.shape[d] for d in (3, 2)]
            x = nn.functional.pad(x, [n for m in missing for n in (m // 2, m - m // 2)])
            x = part.conv.double_conv(torch.cat([beside, x], dim=1))
        return self.outc.conv(x)


def noisy(model, amount):
    for parameter in model.parameters():
        parameter.add_(amount * torch.randn_like(parameter))
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point():
            buffer.add_(amount * torch.rand_like(buffer))
    return model.eval()


def bert(kind, **options):
    config = BertConfig(
        vocab_size=19,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=9,
        **options,
    )
    return noisy(kind(config), 0.2)


with torch.no_grad():
    torch.manual_seed(1)
    images("resnet18", thin(resnet.resnet18(num_classes=10), 32), torch.randn(2, 3, 38, 33))
    images("resnet20", thin(Cifar(), 32), torch.randn(2, 3, 17, 20))
    images("resnet50", thin(resnet.ResNet(resnet.Bottleneck, [2, 1, 1, 1], num_classes=10), 32), torch.randn(2, 3, 36, 33))

    config = GPT2Config(vocab_size=17, n_positions=10, n_embd=12, n_layer=2, n_head=3, bos_token_id=0, eos_token_id=0)
    model = noisy(GPT2LMHeadModel(config), 0.2)
    tokens = torch.randint(0, 17, (2, 9))
    save("gpt2", model, tokens=tokens, logits=model(tokens).logits)

    tokens = torch.randint(1, 19, (2, 8))
    types = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0, 0]])
    inputs = {"tokens": tokens, "types": types, "mask": mask}
    for name, model in [
        ("bert-masked-lm", bert(BertForMaskedLM)),
        ("bert-sequence", bert(BertForSequenceClassification, num_labels=3)),
        ("bert-token", bert(BertForTokenClassification, num_labels=4)),
    ]:
        logits = model(tokens, attention_mask=mask, token_type_ids=types).logits
        save(name, model, **inputs, logits=logits, plain=model(tokens).logits)

    for name, bilinear in [("unet", False), ("unet-bilinear", True)]:
        images(name, noisy(UNet(3, 2, 2, bilinear), 0.1), torch.randn(2, 3, 21, 35))

    for count in (
        sum(p.numel() for p in UNet(3, 2, 64, False).parameters()),
        sum(p.numel() for p in UNet(3, 2, 64, True).parameters()),
        sum(p.numel() for p in resnet.resnet18().parameters()),
        sum(p.numel() for p in resnet.resnet50().parameters()),
    ):
        print(count)

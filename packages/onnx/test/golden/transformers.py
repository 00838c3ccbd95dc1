"""ONNX files of torch's own transformer layers, as torch.onnx.export() writes them, with inputs and torch's own results.

Made with torch 1.13.0 (Debian 12: python3-torch 1.13.1+dfsg-4, CPU) and Python 3.11:

    python3 transformers.py

Layers are exported in training mode without dropout: in evaluation mode torch 1.13 computes them by one op that ONNX lacks. The files have
Dropout nodes with masks.
"""

import json
import pathlib

import torch
from torch import nn

directory = pathlib.Path(__file__).parent
torch.manual_seed(0)


def layer(**options):
    return nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, **options)


class Encoder(nn.Module):
    """A classifier with a mask of padding, and norms behind the sums."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.encoder = nn.TransformerEncoder(layer(), 1, enable_nested_tensor=False)
        self.classifier = nn.Linear(8, 3)

    def forward(self, input_ids):
        x = self.encoder(self.words(input_ids), src_key_padding_mask=input_ids == 0)
        return self.classifier(x.mean(1))


class Decoder(nn.Module):
    """A language model with a mask of what comes later, and norms before the sums."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(12, 8), nn.Embedding(6, 8)
        self.layer = layer(norm_first=True, activation="gelu")
        self.norm = nn.LayerNorm(8)

    def forward(self, input_ids):
        length = input_ids.size(1)
        x = self.words(input_ids) + self.places(torch.arange(length))
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        return self.norm(self.layer(x, src_mask=mask)) @ self.words.weight.t()


ids = torch.tensor([[3, 7, 1, 0], [9, 2, 0, 0], [4, 4, 8, 5]])
written = {}
for name, model in {"encoder": Encoder(), "decoder": Decoder()}.items():
    torch.onnx.export(
        model, (ids[:1, :3],), str(directory / f"{name}-17.onnx"), opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
        input_names=["input_ids"], output_names=["logits"], dynamic_axes={"input_ids": {0: "batch", 1: "length"}},
    )  # fmt: skip
    with torch.no_grad():
        logits = model(ids)
    written[name] = {
        "inputs": {"input_ids": {"shape": list(ids.shape), "values": ids.flatten().tolist()}},
        "logits": {"shape": list(logits.shape), "values": logits.flatten().tolist()},
    }
(directory / "transformers.json").write_text(json.dumps(written) + "\n")

"""Further ONNX files as torch.onnx.export() writes them, with inputs and torch's own results: images that are enlarged, and sequences.

Made with torch 1.13.0 (Debian 12: python3-torch 1.13.1+dfsg-4, CPU) and Python 3.11:

    python3 more-graphs.py
"""

import json
import pathlib

import torch
from torch import nn

directory = pathlib.Path(__file__).parent
torch.manual_seed(0)


class Enlarged(nn.Module):
    """The ways in which U-Nets and networks for super-resolution enlarge images."""

    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(2, 4, 3, 2, 1, 1, groups=2)
        self.nearest = nn.Upsample(scale_factor=2)
        self.bilinear = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.bicubic = nn.Upsample(size=(11, 9), mode="bicubic")
        self.last = nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, images):
        x = self.nearest(torch.relu(self.up(images)))
        x = self.bilinear(self.bicubic(x))
        x = nn.functional.interpolate(x, size=(17, 20), mode="bilinear")
        return self.last(x)


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 6)
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(10, 4)
        self.reader = nn.Linear(9, 3)

    def forward(self, input_ids):
        x, (_, cell) = self.lstm(self.words(input_ids))
        x, last = self.gru(x.transpose(0, 1))
        return self.reader(torch.cat((last[0], cell[-1]), 1))


cases = {
    "enlarged": (Enlarged(), "images", torch.randn(2, 2, 3, 4), {0: "batch"}),
    "sequences": (Sequences(), "input_ids", torch.tensor([[3, 7, 1, 0], [9, 2, 0, 0], [4, 4, 8, 5]]), {0: "batch", 1: "length"}),
}
written = {}
for name, (model, key, x, axes) in cases.items():
    torch.onnx.export(
        model.eval(), (x[:1],), str(directory / f"{name}-17.onnx"), opset_version=17,
        input_names=[key], output_names=["logits"], dynamic_axes={key: axes},
    )  # fmt: skip
    with torch.no_grad():
        logits = model(x)
    written[name] = {
        "inputs": {key: {"shape": list(x.shape), "values": x.flatten().tolist()}},
        "logits": {"shape": list(logits.shape), "values": logits.flatten().tolist()},
    }
(directory / "more-graphs.json").write_text(json.dumps(written) + "\n")

"""A small U-Net in the form in which milesial/Pytorch-UNet saves its checkpoints, and its logits.

The network is that of its unet/unet_model.py, with few channels. A checkpoint is the state dict itself, with the list `mask_values` among its
tensors. Two of them, for two classes and for three, are the same but for the last layer. Made with torch 1.13.0 (Debian 12: python3-torch 1.13.1+dfsg-4, CPU) and Python 3.11:

    python3 unet.py
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

directory = pathlib.Path(__file__).parent
torch.manual_seed(0)


class DoubleConv(nn.Module):
    def __init__(self, channels, size, middle=None):
        super().__init__()
        middle = middle or size
        self.double_conv = nn.Sequential(
            nn.Conv2d(channels, middle, 3, padding=1, bias=False),
            nn.BatchNorm2d(middle),
            nn.ReLU(),
            nn.Conv2d(middle, size, 3, padding=1, bias=False),
            nn.BatchNorm2d(size),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(channels, size))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv = DoubleConv(channels, size, channels // 2)

    def forward(self, x, beside):
        x = self.up(x)
        height, width = (beside.shape[i] - x.shape[i] for i in (2, 3))
        x = F.pad(x, [width // 2, width - width // 2, height // 2, height - height // 2])
        return self.conv(torch.cat([beside, x], dim=1))


class OutConv(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.conv = nn.Conv2d(channels, classes, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.inc = DoubleConv(3, width)
        self.down1 = Down(width, 2 * width)
        self.down2 = Down(2 * width, 4 * width)
        self.down3 = Down(4 * width, 8 * width)
        self.down4 = Down(8 * width, 8 * width)
        self.up1 = Up(16 * width, 4 * width)
        self.up2 = Up(8 * width, 2 * width)
        self.up3 = Up(4 * width, width)
        self.up4 = Up(2 * width, width)
        self.outc = OutConv(width, classes)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        y = self.up1(self.down4(x4), x4)
        return self.outc(self.up4(self.up3(self.up2(y, x3), x2), x1))


model = UNet(width=2, classes=1)
for module in model.modules():
    if isinstance(module, nn.BatchNorm2d):
        nn.init.uniform_(module.weight, 0.5, 1.5)
        nn.init.uniform_(module.bias, 0.8, 1.6)
        # The mean of all batches, of which there is one.
        module.momentum = None
# Bytes of a picture, [channels, height, width].
picture = torch.arange(3 * 17 * 20) * 37 % 256
x = picture.reshape(1, 3, 17, 20) / 255
# Moments of pictures: with any others whole channels are zero behind ReLU, and logits are the same everywhere.
with torch.no_grad():
    model.train()(torch.rand(8, 3, 17, 20))
# Numbers that float16 holds, so that the file is half as large.
model.half().float().eval()
three = OutConv(2, 3)
nn.init.normal_(three.conv.weight)
nn.init.normal_(three.conv.bias)
three.half().float()


def scores():
    with torch.no_grad():
        logits = model(x)[0]
    assert all(len(of_class.unique()) > 300 for of_class in logits), "a golden file needs logits that differ"
    return logits.flatten().tolist()


golden = {"height": 17, "width": 20, "pixels": picture.tolist(), "logits": scores()}
two_classes = {**model.half().state_dict(), "mask_values": [0, 1]}
model.float().outc = three
golden["logitsOfThree"] = scores()
heads = {f"outc.{name}": tensor for name, tensor in three.half().state_dict().items()}
three_classes = {**two_classes, **heads, "mask_values": [0, 1, 2]}
# Two dicts: a key has to choose one.
torch.save({"last": {"weights": three_classes}, "averaged": {"weights": two_classes}}, directory / "unet.pth")
(directory / "unet.json").write_text(json.dumps(golden) + "\n")

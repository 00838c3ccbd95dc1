"""A checkpoint of a small network for CIFAR-10 in the form in which such networks are published, and its logits.

The network is that of He et al. 2015, section 4.2, with option A, as in akamaster/pytorch_resnet_cifar10: shortcuts without parameters, the last
layer called `linear`, DataParallel's names, a training checkpoint around it. Made with torch 1.13.0 (Debian 12: python3-torch 1.13.1+dfsg-4, CPU)
and Python 3.11:

    python3 cifar.py
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

directory = pathlib.Path(__file__).parent
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, channels, size, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, size, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(size)
        self.conv2 = nn.Conv2d(size, size, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(size)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if x.shape != y.shape:
            added = y.shape[1] - x.shape[1]
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, added // 2, added // 2))
        return F.relu(x + y)


class Network(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(Block(width, width, 1))
        self.layer2 = nn.Sequential(Block(width, 2 * width, 2))
        self.layer3 = nn.Sequential(Block(2 * width, 4 * width, 2))
        self.linear = nn.Linear(4 * width, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


model = Network(width=4, classes=10)
for module in model.modules():
    if isinstance(module, nn.BatchNorm2d):
        nn.init.uniform_(module.weight, 0.5, 1.5)
        nn.init.normal_(module.bias, 0, 0.1)
        nn.init.normal_(module.running_mean, 0, 0.2)
        nn.init.uniform_(module.running_var, 0.5, 1.5)
model.eval()
# [batch, channels, height, width]: multiples of 1/32, which every storage format holds.
images = ((torch.arange(2 * 3 * 8 * 8) * 7 % 61) - 30).reshape(2, 3, 8, 8) / 32
with torch.no_grad():
    logits = model(images)
state = {f"module.{name}": tensor for name, tensor in model.state_dict().items()}
torch.save({"state_dict": state, "best_prec1": 91.7}, directory / "cifar.th")
golden = {"images": images.flatten().tolist(), "logits": logits.flatten().tolist()}
(directory / "cifar.json").write_text(json.dumps(golden) + "\n")

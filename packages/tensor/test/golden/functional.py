"""Values and gradients of the entry `functional` in float64, by torch 1.13.1: `python functional.py > functional.json`.

Inputs are multiples of 1/32 below 4 in magnitude, which every storage format holds exactly. Images are channels first here, and
channels last in the file.
"""

import json

import torch
import torch.nn.functional as F

from gradients import gradients_of

torch.set_default_dtype(torch.float64)
cases = {}


def numbers(shape, seed, low=-1.9, high=1.9):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(shape, generator=generator) * (high - low) + low
    return torch.round(x * 32) / 32


def case(name, inputs, f):
    inputs = [x.detach().requires_grad_() for x in inputs]
    result = f(*inputs)
    cases[name] = {
        "inputs": [{"shape": list(x.shape), "values": x.detach().flatten().tolist()} for x in inputs],
        "shape": list(result.shape),
        "values": result.detach().to(torch.float64).flatten().tolist(),
        "gradients": gradients_of(result, inputs),
    }


x = numbers([3, 5, 2], 1)
v, w = numbers([4], 2), numbers([3], 3)
case("clone", [x], torch.clone)
case("repeat", [x], lambda x: x.repeat(2, 1, 2, 3))
case("tile", [x], lambda x: x.tile(2, 3))
case("tril", [x], lambda x: x.tril(-1))
case("triu", [x], lambda x: x.triu(1))
case("outer", [v, w], torch.outer)
case("lerp near", [v, numbers([4], 4)], lambda a, b: torch.lerp(a, b, 0.25))
case("lerp far", [v, numbers([4], 4)], lambda a, b: torch.lerp(a, b, 0.75))
case("lerp by a tensor", [v, numbers([4], 4), numbers([4], 5)], torch.lerp)
case("index", [x], lambda x: x[-1, 1:4:2, None, :])
case("index by places", [x], lambda x: x[:, torch.tensor([4, 0, 4])])
case("index by two", [x], lambda x: x[torch.tensor([[2], [-3]]), torch.tensor([4, -1, 0])])
case("index by two apart", [x], lambda x: x[torch.tensor([2, 0]), 1:3, torch.tensor([-1, 0])])
case("index, the rest", [x], lambda x: x[..., 1])
case("sort", [x], lambda x: x.sort(dim=1, stable=True).values)
case("argsort", [x], lambda x: x.sort(dim=1, stable=True).indices)
case("argsort, descending", [x], lambda x: x.sort(dim=0, stable=True, descending=True).indices)
case("argmin", [x], lambda x: x.argmin(1))
case("median", [x], lambda x: x.median(1).values)
case("median of two", [x], lambda x: x.median(2).values)
case("median of all", [x], torch.median)
case("median of ties", [torch.tensor([[1.0, 2.0, 1.0], [0.5, 1.0, 3.0]])], torch.median)
scalar = torch.tensor(-0.75)
case("sort of a scalar", [scalar], lambda x: x.sort().values)
case("argsort of a scalar", [scalar], lambda x: x.argsort())
case("median of a scalar", [scalar], lambda x: x.median(0).values)
case("topK of a scalar", [scalar], lambda x: x.topk(1, largest=False).values)
case("topK's place in a scalar", [scalar], lambda x: x.topk(1).indices)
case("cumsum of a scalar", [scalar], lambda x: x.cumsum(-1))
case("cumprod of a scalar", [scalar], lambda x: x.cumprod(0))
case("median's places", [x], lambda x: x.median(1).indices)

channels_last = lambda image: image.permute(0, 2, 3, 1)
channels_first = lambda image: image.permute(0, 3, 1, 2)
on_images = lambda f: lambda x: channels_last(f(channels_first(x)))
on_sequences = lambda f: lambda x: f(x.mT).mT
image, sequence = numbers([2, 5, 6, 4], 6), numbers([2, 7, 3], 7)


def unfolded(x, kernel, **options):
    """Windows as rows, with channels last in each."""
    windows = F.unfold(channels_first(x), kernel, **options)
    batch, _, places = windows.shape
    return windows.reshape(batch, x.shape[3], -1, places).permute(0, 3, 2, 1).reshape(batch, places, -1)


def folded(rows, size, kernel, **options):
    batch, places, width = rows.shape
    elements = kernel[0] * kernel[1]
    columns = rows.reshape(batch, places, elements, -1).permute(0, 3, 2, 1).reshape(batch, width, places)
    return channels_last(F.fold(columns, size, kernel, **options))


case("unfold", [image], lambda x: unfolded(x, (3, 2), padding=(1, 0), stride=(2, 1), dilation=(1, 2)))
case("fold", [numbers([2, 12, 24], 8)], lambda x: folded(x, (5, 6), (3, 2), padding=(1, 0), stride=(2, 1), dilation=(1, 2)))
case("adaptiveAvgPool2d", [image], on_images(lambda x: F.adaptive_avg_pool2d(x, (3, 4))))
case("adaptiveAvgPool2d of divisors", [image], on_images(lambda x: F.adaptive_avg_pool2d(x, (1, 3))))
case("adaptiveAvgPool1d", [sequence], on_sequences(lambda x: F.adaptive_avg_pool1d(x, 3)))
case("maxPool1d", [sequence], on_sequences(lambda x: F.max_pool1d(x, 3, 2, 1)))
case("avgPool1d", [sequence], on_sequences(lambda x: F.avg_pool1d(x, 2)))
# The last window begins in the input, or where the padding on the right would begin, which drops it.
ceiled = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
far = {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True}
case("maxPool2d, ceiled", [image], on_images(lambda x: F.max_pool2d(x, **ceiled)))
case("maxPool2d of pairs, ceiled", [image], on_images(lambda x: F.max_pool2d(x, 2, ceil_mode=True)))
case("maxPool2d, far", [image], on_images(lambda x: F.max_pool2d(x, **far)))
case("avgPool2d, ceiled", [image], on_images(lambda x: F.avg_pool2d(x, **ceiled)))
case("avgPool2d, far", [image], on_images(lambda x: F.avg_pool2d(x, **far)))
case("avgPool2d without padding", [image], on_images(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)))
case("avgPool2d, ceiled, without padding", [image], on_images(lambda x: F.avg_pool2d(x, **ceiled, count_include_pad=False)))
case("maxPool1d, ceiled", [sequence], on_sequences(lambda x: F.max_pool1d(x, 4, 4, ceil_mode=True)))
case("avgPool1d, ceiled", [sequence], on_sequences(lambda x: F.avg_pool1d(x, 4, 3, 2, ceil_mode=True)))
case("avgPool1d without padding", [sequence], on_sequences(lambda x: F.avg_pool1d(x, 4, 4, 2, True, False)))
case("instanceNorm", [image, numbers([4], 9), numbers([4], 10)], lambda x, w, b: on_images(lambda y: F.instance_norm(y, weight=w, bias=b))(x))
case("pixelShuffle", [image], on_images(lambda x: F.pixel_shuffle(x, 2)))
case("pixelUnshuffle", [numbers([2, 4, 6, 3], 11)], on_images(lambda x: F.pixel_unshuffle(x, 2)))

for mode in ["bilinear", "bicubic", "nearest-exact"]:
    case(f"upsample by 1.5, {mode}", [image], on_images(lambda x: F.interpolate(x, scale_factor=1.5, mode=mode)))
case("upsample by 0.6", [sequence], on_sequences(lambda x: F.interpolate(x, scale_factor=0.6, mode="linear")))


def convolved(x, weight, bias, **options):
    """Volumes are [batch, depth, height, width, channels], weights [depth, height, width, in, out]."""
    y = F.conv3d(x.permute(0, 4, 1, 2, 3), weight.permute(4, 3, 0, 1, 2), bias, **options)
    return y.permute(0, 2, 3, 4, 1)


volume = numbers([2, 4, 3, 5, 4], 12)
case("conv3d", [volume, numbers([2, 3, 2, 4, 3], 13), numbers([3], 14)], lambda x, w, b: convolved(x, w, b, padding=(1, 0, 1)))
case("conv3d of groups", [volume, numbers([2, 2, 2, 2, 6], 15), numbers([6], 16)], lambda x, w, b: convolved(x, w, b, stride=(1, 1, 2), dilation=(2, 1, 1), groups=2))

print(json.dumps(cases, separators=(",", ":")))

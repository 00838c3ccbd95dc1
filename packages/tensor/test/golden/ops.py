"""Values and gradients of ops in float64, by torch 1.13.1: `python ops.py > ops.json`.

Inputs are multiples of 1/32 below 4 in magnitude, which every storage format holds exactly. Images are channels first here, and
channels last in the file.
"""

import json
import math

import torch
import torch.nn.functional as F

from gradients import gradients_of

torch.set_default_dtype(torch.float64)
cases = {}


def numbers(shape, seed, low=-1.9, high=1.9):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(shape, generator=generator) * (high - low) + low
    return torch.round(x * 32) / 32


def case(name, inputs, f, index=None):
    inputs = [x.detach().requires_grad_() for x in inputs]
    result = f(*inputs) if index is None else f(*inputs, torch.tensor(index))
    cases[name] = {
        "inputs": [{"shape": list(x.shape), "values": x.detach().flatten().tolist()} for x in inputs],
        "shape": list(result.shape),
        "values": [v if math.isfinite(v) else str(v) for v in result.detach().to(torch.float64).flatten().tolist()],
        "gradients": gradients_of(result, inputs),
    }


x = numbers([3, 5, 2], 1)
y = numbers([5, 1], 2)
unit = numbers([3, 5, 2], 3, -0.95, 0.95)
positive = numbers([3, 5, 2], 4, 0.1, 3.5)

for name in "expm1 sin cos tan atan sinh cosh abs sign floor ceil round erf".split():
    case(name, [x], getattr(torch, name))
for name in "asin acos erfinv".split():
    case(name, [unit], getattr(torch, name))
for name in "log1p log2 log10 rsqrt".split():
    case(name, [positive], getattr(torch, name))
for name in "maximum minimum atan2 eq ne lt le gt ge".split():
    case(name, [x, y], getattr(torch, name))
case("gelu", [x], F.gelu)
case("gelu by tanh", [x], lambda x: F.gelu(x, approximate="tanh"))
case("silu", [x], F.silu)
case("elu", [x], lambda x: F.elu(x, 0.7))
case("leakyRelu", [x], lambda x: F.leaky_relu(x, 0.3))
case("clamp", [x], lambda x: x.clamp(-0.5, 1))
case("hardtanh", [x], F.hardtanh)
case("softplus", [x], lambda x: F.softplus(x, 2, 3))
case("prelu", [x, numbers([2], 5)], lambda x, w: torch.where(x > 0, x, w * x))
case("pow by 3", [x], lambda x: x**3)
case("pow by -1.5", [positive], lambda x: x**-1.5)
case("pow by a tensor", [positive, y], lambda x, y: x**y)
case("addcmul", [x, y, unit], lambda x, a, b: torch.addcmul(x, a, b, value=-0.5))
case("addcdiv", [x, y, positive], lambda x, a, b: torch.addcdiv(x, a, b, value=2))
case("maskedFill", [x], lambda x: x.masked_fill(x > 1, -3))
case("where", [x, y], lambda x, y: torch.where(x > y, x, y * 2))

case("prod", [x], lambda x: x.prod())
case("prod of rows", [x], lambda x: x.prod(1, keepdim=True))
case("amax", [x], lambda x: x.amax((0, 2)))
case("amin", [x], lambda x: x.amin(1))
case("max", [x], lambda x: x.max(1).values)
case("max's places", [x], lambda x: x.max(1).indices)
case("min's places", [x], lambda x: x.min(2).indices)
case("topK", [x], lambda x: x.topk(3, 1).values)
case("topK's places", [x], lambda x: x.topk(3, 1).indices)
case("topK of the smallest", [x], lambda x: x.topk(2, 0, largest=False).values)
case("any", [x], lambda x: (x > 1.5).any(1))
case("all", [x], lambda x: (x > -1.5).all(2))
case("variance", [x], lambda x: x.var((0, 2)))
case("std", [x], lambda x: x.std(1, correction=0))
case("logsumexp", [x], lambda x: x.logsumexp((0, 1)))
case("norm", [x], lambda x: torch.linalg.vector_norm(x, 2, 1))
case("norm of 1", [x], lambda x: torch.linalg.vector_norm(x, 1))
case("norm of 3", [x], lambda x: torch.linalg.vector_norm(x, 3, (0, 2)))
case("norm of infinity", [x], lambda x: torch.linalg.vector_norm(x, math.inf, 0))
case("cumsum", [x], lambda x: x.cumsum(1))
case("cumprod", [x], lambda x: x.cumprod(2))
case("cumsum of rows", [numbers([3, 8], 6)], lambda x: x.cumsum(1))

case("slice", [x], lambda x: x[:, 1:5:2])
case("select", [x], lambda x: x[:, -2])
case("pad", [x], lambda x: F.pad(x, (1, 0, -1, 2, 0, 1), value=0.5))
case("flip", [x], lambda x: x.flip((0, 1)))
case("roll", [x], lambda x: x.roll(2, 1))
case("transpose", [x], lambda x: x.transpose(0, 2))
case("cat", [x, numbers([3, 1, 2], 7), numbers([3, 4, 2], 8)], lambda *x: torch.cat(x, 1))
case("stack", [x, unit], lambda *x: torch.stack(x, -1))
index = [[[0, 4], [2, 2]], [[1, 3], [0, 0]], [[4, 4], [3, 1]]]
case("gather", [x], lambda x, i: x.gather(1, i), index)
case("scatterAdd", [x, numbers([3, 2, 2], 9)], lambda x, s, i: x.scatter_add(1, i, s), index)
distinct = [[[0, 4], [2, 2]], [[1, 3], [0, 0]], [[4, 2], [3, 1]]]
case("scatter", [x, numbers([3, 2, 2], 9)], lambda x, s, i: x.scatter(1, i, s), distinct)
case("indexSelect", [x], lambda x, i: x.index_select(1, i), [3, 0, 3])
case("indexPut", [x, numbers([2, 5, 2], 10)], lambda x, v, i: x.index_put((i,), v), [2, 0])
case("indexPut, added", [x, numbers([3, 5, 2], 10)], lambda x, v, i: x.index_put((i,), v, True), [2, 0, 2])
case("indexPut by two", [x, numbers([3, 2], 10)], lambda x, v: x.index_put((torch.tensor([2, 0, 2]), torch.tensor([4, 1, 0])), v))
case("indexPut by two, added", [x, numbers([3, 2], 10)], lambda x, v: x.index_put((torch.tensor([2, 0, 2]), torch.tensor([4, 1, 4])), v, True))
case("embedding", [numbers([6, 4], 11)], lambda w, i: F.embedding(i, w), [[1, 5, 1], [0, 0, 3]])

channels_last = lambda image: image.permute(0, 2, 3, 1)
channels_first = lambda image: image.permute(0, 3, 1, 2)
resized = lambda **options: lambda x: channels_last(F.interpolate(channels_first(x), **options))
image = numbers([2, 3, 5, 3], 12)
case("upsampleNearest2d", [image], resized(scale_factor=2, mode="nearest"))
case("upsampleNearest2d to a size", [image], resized(size=(7, 4), mode="nearest"))
case("upsampleBilinear2d", [image], resized(size=(6, 3), mode="bilinear"))
case("upsampleBilinear2d, corners", [image], resized(size=(4, 9), mode="bilinear", align_corners=True))
for options in [{"size": (6, 3)}, {"size": (4, 9), "align_corners": True}]:
    case(", ".join(["upsampleBicubic2d", *list(options)[1:]]), [image], resized(mode="bicubic", **options))
case("upsampleNearest2d, exact", [image], resized(size=(7, 4), mode="nearest-exact"))
sequence, volume = numbers([2, 5, 3], 23), numbers([1, 2, 3, 2, 3], 24)
resized1 = lambda **options: lambda x: F.interpolate(x.mT, **options).mT
resized3 = lambda **options: lambda x: F.interpolate(x.permute(0, 4, 1, 2, 3), **options).permute(0, 2, 3, 4, 1)
case("upsampleNearest1d", [sequence], resized1(size=8, mode="nearest"))
case("upsampleLinear1d", [sequence], resized1(size=3, mode="linear"))
case("upsampleNearest3d", [volume], resized3(scale_factor=2, mode="nearest-exact"))
case("upsampleTrilinear3d", [volume], resized3(size=(3, 2, 5), mode="trilinear", align_corners=True))

grid = numbers([2, 4, 3, 2], 22, -1.3, 1.3) + 1 / 64
far = numbers([2, 4, 3, 2], 25, -3.9, 3.9) + 1 / 64
reflection = {"padding_mode": "reflection"}
cornered = [{"padding_mode": "border", "align_corners": True}, {**reflection, "align_corners": True}]
for options in [{}, *cornered, reflection, {"mode": "nearest"}]:
    name = ", ".join(["gridSampler", *(f"{key} {value}" for key, value in options.items())])
    options = {"align_corners": False, **options}
    case(name, [image, far if options.get("padding_mode") == "reflection" else grid], lambda x, g: channels_last(F.grid_sample(channels_first(x), g, **options)))

v, w = numbers([7], 13), numbers([7], 14)
case("dot", [v, w], torch.dot)
case("cross", [numbers([2, 3], 15), numbers([2, 3], 16)], lambda a, b: torch.cross(a, b, dim=1))
case("tensordot", [x, numbers([2, 5, 4], 17)], lambda a, b: torch.tensordot(a, b, ([2, 1], [0, 1])))
bilinear = [numbers([4, 3], 18), numbers([4, 2], 19), numbers([5, 3, 2], 20), numbers([5], 21)]
case("bilinear", bilinear, F.bilinear)

print(json.dumps(cases, separators=(",", ":")))

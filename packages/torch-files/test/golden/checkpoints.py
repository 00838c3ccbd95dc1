"""Checkpoints as torch.save() writes them, and what is in them.

Made with torch 1.13.0 (Debian 12: python3-torch 1.13.1+dfsg-4, CPU) and Python 3.11:

    python3 checkpoints.py

The files differ in nothing but timestamps when they are made again. checkpoints.json has dtype, shape and the bytes of each tensor in
row-major order, as numbers from torch itself.
"""

import argparse
import collections
import json
import pathlib

import torch

directory = pathlib.Path(__file__).parent
torch.manual_seed(0)


def counting(*shape, dtype=torch.float32):
    size = torch.Size(shape).numel()
    return (torch.arange(size) - size // 3).to(dtype).reshape(shape)


def every_kind():
    """All dtypes, and tensors that are a part of their storage, or lie in it in another order."""
    shared = counting(4, 6)
    state = collections.OrderedDict()
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64,
        torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    ):  # fmt: skip
        state[str(dtype).removeprefix("torch.")] = (counting(2, 3).abs() * 1.25).to(dtype)
    state["bool"] = torch.tensor([True, False, True])
    state["scalar"] = torch.tensor(1234567890123)
    state["empty"] = torch.zeros(2, 0, 3)
    state["whole"] = shared
    state["transposed"] = shared.t()
    state["part"] = shared[1:3, 2:5]
    state["steps"] = shared[::2, 1::3]
    state["expanded"] = torch.arange(3).expand(2, 3)
    state["permuted"] = counting(2, 3, 4, dtype=torch.float16).permute(2, 0, 1)
    state["parameter"] = torch.nn.Parameter(counting(3), requires_grad=True)
    state["frozen"] = torch.nn.Parameter(counting(2), requires_grad=False)
    return state


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3, bias=False)
        self.bn = torch.nn.BatchNorm2d(2)
        self.register_buffer("cache", torch.ones(3), persistent=False)


def training_checkpoint():
    """As training programs write it, with DataParallel's prefix."""
    model = torch.nn.Sequential(collections.OrderedDict(fc=torch.nn.Linear(3, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = {f"module.{name}": tensor for name, tensor in model.state_dict().items()}
    checkpoint = {
        "epoch": 200,
        "best_prec1": torch.tensor(91.7),
        "args": argparse.Namespace(arch="resnet20", seen={1, 2}, rates=(0.1, 0.01)),
        "optimizer": optimizer.state_dict(),
        "state_dict": state,
    }
    return checkpoint, {name.removeprefix("module."): value for name, value in state.items()}


expected = {}


def note(file, state):
    def words(tensor):
        flat = tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
        return bytes(flat.view(torch.uint8).tolist()).hex()

    expected[file] = {
        name: {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "bytes": words(tensor),
        }
        for name, tensor in state.items()
    }


def save(file, value, state=None, **options):
    torch.save(value, directory / file, **options)
    if state is not None:
        note(file, state)


kinds = every_kind()
save("every-kind.pt", kinds, kinds)
save("every-kind-legacy.pt", kinds, kinds, _use_new_zipfile_serialization=False)
save("every-kind-protocol-4.pt", kinds, kinds, pickle_protocol=4)
checkpoint, state = training_checkpoint()
save("training.th", checkpoint, state, _use_new_zipfile_serialization=False)
save("training.pth", checkpoint, state)
block = torch.nn.Sequential(Block(), torch.nn.Linear(2, 2))
save("module.pt", block, block.state_dict())
save("gan.pt", {"generator": {"weight": counting(2)}, "critic": {"weight": counting(3)}})
save("sparse.pt", {"weight": torch.eye(2).to_sparse()})
save("quantized.pt", {"weight": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)})
save("nothing.pt", {"epoch": 3, "args": argparse.Namespace(lr=0.1)})
torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(directory / "scripted.pt"))

sharded = directory / "sharded"
sharded.mkdir(exist_ok=True)
parts = [{"embed.weight": counting(4, 2)}, {"head.weight": counting(2, 2), "head.bias": counting(2)}]
names = [f"pytorch_model-{i + 1:05}-of-00002.bin" for i in range(2)]
for name, part in zip(names, parts):
    save(f"sharded/{name}", part)
weight_map = {key: name for name, part in zip(names, parts) for key in part}
index = {"metadata": {"total_size": 56}, "weight_map": weight_map}
(sharded / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2) + "\n")
note("sharded", parts[0] | parts[1])

(directory / "checkpoints.json").write_text(json.dumps(expected, indent=1) + "\n")

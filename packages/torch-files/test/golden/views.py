"""Checkpoints with what torch keeps as a view or writes by another reference, and what is in them.

Made with torch 2.13.0 (CPU) and Python 3:

    python3 views.py

The files differ in nothing but timestamps and the keys of storages when they are made again. views.json has dtype, shape and the bytes of
each tensor in row-major order, as numbers from torch itself.
"""

import json
import pathlib

import torch

directory = pathlib.Path(__file__).parent
numbers = torch.arange(12, dtype=torch.float32)
# Without zeros, of which torch negates complex ones to 0 or −0 by the way that it takes.
complexes = torch.complex(numbers - 5.5, 7.5 - numbers).reshape(3, 4)


def conjugate(dtype=torch.complex64):
    # Of its own storage: legacy files hold no storage under two dtypes.
    return complexes.to(dtype, copy=True).conj()


def signs():
    """Tensors whose conjugate or negative bit is set: their elements in the storage have other signs."""
    return {
        "plain": complexes,
        "conjugate": conjugate(),
        "conjugate_transposed": conjugate().t()[1:],
        "imaginary": conjugate().imag,
        "negative": torch._neg_view(complexes.clone()),
        "negative_conjugate": torch._neg_view(conjugate()),
        "parameter": torch.nn.Parameter(conjugate()),
        "double": conjugate(torch.complex128).imag,
        "half": torch._neg_view(numbers.half()),
        "bfloat16": torch._neg_view(numbers.bfloat16()),
    }


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3, bias=False)
        self.bn = torch.nn.BatchNorm2d(2)
        self.register_buffer("cache", torch.ones(3), persistent=False)


expected = {}


def words(tensor):
    plain = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return bytes(plain.reshape(-1).view(torch.uint8).tolist()).hex()


def save(file, value, state=None, **options):
    torch.save(value, directory / file, **options)
    if state is not None:
        expected[file] = {
            name: {
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "shape": list(tensor.shape),
                "bytes": words(tensor),
            }
            for name, tensor in state.items()
        }


legacy = {"_use_new_zipfile_serialization": False}
torch.manual_seed(0)
save("signs.pt", signs(), signs())
save("signs-legacy.pt", signs(), signs(), **legacy)
save("negative-integers.pt", {"weight": torch._neg_view(torch.arange(3))})
block = torch.nn.Sequential(Block(), Block(), torch.nn.Linear(2, 2))
save("module-legacy.pt", block, block.state_dict(), **legacy)
net = {"weight": numbers[:2].clone(), "bias": numbers[:1].clone()}
optimizer = {"state": {0: {"exp_avg": numbers[:2].clone()}}}
save("beside.pt", {"epoch": torch.tensor(3), "mynet": net, "optimizer": optimizer, "history": [net["bias"]]})

(directory / "views.json").write_text(json.dumps(expected, indent=1) + "\n")

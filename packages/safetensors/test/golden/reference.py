"""Writes reference.safetensors with the reference implementation, and reference.json: what is in it, bytes in base64.

Run: python3 reference.py   (made with safetensors 0.8.0 and torch 2.13.0; F6_E2M3 and F6_E3M2 have no counterpart there)
"""

import base64
import json
import pathlib

import safetensors.torch
import torch

torch.manual_seed(1)
integers = torch.arange(-3, 3)
floats = torch.tensor([[0.0, -0.0, 1.5], [float("inf"), float("nan"), -1e-8]])
tensors = {
    "model.0.weight": floats,
    "model.0.bias": torch.tensor(3.25),
    "empty": torch.zeros((2, 0, 3)),
    "half": floats.half(),
    "brain": floats.bfloat16(),
    "double": floats.double(),
    "complex": torch.tensor([1 + 2j, -3.5j], dtype=torch.complex64),
    "bool": torch.tensor([True, False, True]),
    "i8": integers.to(torch.int8),
    "i16": integers.to(torch.int16),
    "i32": integers.to(torch.int32),
    "i64": integers * 2**60,
    "u8": torch.arange(250, 255).to(torch.uint8),
    "u16": torch.tensor([65535, 1], dtype=torch.uint16),
    "u32": torch.tensor([2**32 - 1], dtype=torch.uint32),
    "u64": torch.tensor([2**63 + 1], dtype=torch.uint64),
    "f8/e4m3fn": floats[0].to(torch.float8_e4m3fn),
    "f8/e5m2": floats[0].to(torch.float8_e5m2),
    "f8/e4m3fnuz": floats[0].to(torch.float8_e4m3fnuz),
    "f8/e5m2fnuz": floats[0].to(torch.float8_e5m2fnuz),
    "f8/e8m0fnu": torch.tensor([0.5, 2.0]).to(torch.float8_e8m0fnu),
    "f4": torch.tensor([0x21, 0x43], dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    # The order of names is that of UTF-8, and serde's escapes are those of JSON.stringify.
    "\uffee": torch.tensor([1.0]),
    "\U0001f600": torch.tensor([2.0]),
    'quote " backslash \\ slash / newline \n control \x01 \x1f delete \x7f line \u2028 é': torch.tensor([3.0]),
}
here = pathlib.Path(__file__).parent
metadata = {"format": 'pt "\\\n\x02\u2028é\U0001f600'}
safetensors.torch.save_file(tensors, here / "reference.safetensors", metadata)

read = safetensors.deserialize((here / "reference.safetensors").read_bytes())
content = {
    "metadata": metadata,
    "tensors": {
        name: {
            "dtype": tensor["dtype"],
            "shape": tensor["shape"],
            "bytes": base64.b64encode(tensor["data"]).decode(),
        }
        for name, tensor in sorted(read)
    },
}
(here / "reference.json").write_text(json.dumps(content, indent=1) + "\n")

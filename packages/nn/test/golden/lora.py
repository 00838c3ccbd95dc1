"""A linear layer with a low-rank adapter: its result, and the gradients of the adapter.

The formula is that of PEFT's `Linear` (peft/tuners/lora/layer.py): base(x) + lora_B(lora_A(x)) * alpha / r. Made with torch 1.13.0 (Debian 12:
python3-torch 1.13.1+dfsg-4, CPU) in float64, and Python 3.11:

    python3 lora.py > lora.json
"""

import json

import torch

torch.set_default_dtype(torch.float64)


def counting(*shape):
    size = torch.Size(shape).numel()
    # Multiples of 1/32, which every storage format holds.
    return ((torch.arange(size) * 11 % 23 - 11) / 32).reshape(shape)


x = counting(4, 6)
base = torch.nn.Linear(6, 3)
base.weight.data, base.bias.data = counting(3, 6), counting(3)
lora_A, lora_B = torch.nn.Linear(6, 2, bias=False), torch.nn.Linear(2, 3, bias=False)
lora_A.weight.data, lora_B.weight.data = counting(2, 6) * 2, counting(3, 2) * 4
y = base(x) + lora_B(lora_A(x)) * (6 / 2)
(y * counting(4, 3)).sum().backward()
values = {
    "x": x,
    "weight": base.weight,
    "bias": base.bias,
    "a": lora_A.weight,
    "b": lora_B.weight,
    "y": y,
    "factors": counting(4, 3),
    "gradA": lora_A.weight.grad,
    "gradB": lora_B.weight.grad,
}
print(json.dumps({name: value.detach().flatten().tolist() for name, value in values.items()}))

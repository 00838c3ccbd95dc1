"""Golden vectors of convolutions, norms and attention: values and gradients by torch, in float64, to nine decimals.

Made with torch 2.13.0+cpu, Python 3.11 or later: python torch-layers.py > torch-layers.json
Tensors are laid out as in the library: channels last, convolution weights [height, width, in / groups, out].
"""

import json

import torch
import torch.nn.functional as F

torch.manual_seed(11)
cases = []


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def pack(x):
    if x is None:
        return None
    integer = not x.is_floating_point()
    values = x.detach().reshape(-1).tolist()
    return {"shape": list(x.shape), "values": [int(v) for v in values] if integer else [round(v, 9) for v in values], "isInteger": integer}


def add(op, function, inputs, options=None, tensors=None):
    options, tensors = options or {}, tensors or {}
    leaves = [x.clone().requires_grad_() for x in inputs]
    result = function(*leaves, options, tensors)
    weights = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64).reshape(result.shape)
    gradients = torch.autograd.grad((result * weights).sum(), leaves)
    cases.append({
        "op": op,
        "inputs": [pack(x) for x in inputs],
        "options": options,
        "tensors": {name: pack(x) for name, x in tensors.items()},
        "result": pack(result),
        "gradients": [pack(x) for x in gradients],
    })


def first(x):
    return x.movedim(-1, 1)


def last(x):
    return x.movedim(1, -1)


def convolution(x, w, b, o, t):
    dims = x.dim() - 2
    function = {1: F.conv1d, 2: F.conv2d}[dims]
    return last(function(first(x), w.movedim((-1, -2), (0, 1)), b, **o))


def transposed(x, w, b, o, t):
    dims = x.dim() - 2
    function = {1: F.conv_transpose1d, 2: F.conv_transpose2d}[dims]
    named = {"output_padding" if k == "outputPadding" else k: v for k, v in o.items()}
    return last(function(first(x), w.movedim((-1, -2), (0, 1)), b, **named))


add("conv2d", convolution, [normal(2, 5, 4, 6), normal(3, 2, 2, 9), normal(9)], {"groups": 3, "stride": [2, 1], "padding": [1, 0]})
add("conv2d", convolution, [normal(1, 6, 6, 8), normal(3, 3, 1, 8), normal(8)], {"groups": 8, "dilation": [1, 2], "padding": [1, 2]})
add("conv2d", convolution, [normal(1, 5, 5, 2), normal(2, 3, 1, 6), normal(6)], {"groups": 2})
add("conv1d", convolution, [normal(2, 7, 3), normal(3, 3, 4), normal(4)], {"stride": 2, "padding": 1})
add("conv1d", convolution, [normal(2, 9, 4), normal(2, 2, 6), normal(6)], {"groups": 2, "dilation": 3})
add("convTranspose2d", transposed, [normal(2, 3, 4, 3), normal(3, 2, 5, 3), normal(5)], {"stride": [2, 3], "padding": [1, 0], "outputPadding": [1, 2]})
add("convTranspose2d", transposed, [normal(1, 3, 3, 4), normal(2, 2, 3, 4), normal(6)], {"groups": 2, "dilation": 2})
add("convTranspose1d", transposed, [normal(2, 4, 3), normal(4, 2, 3), normal(2)], {"stride": 3, "padding": 1, "outputPadding": 2})

add("layerNorm", lambda x, w, b, o, t: F.layer_norm(x, (5,), w, b), [normal(4, 5) * 3 + 2, normal(5), normal(5)])
add("layerNorm", lambda x, w, b, o, t: F.layer_norm(x, (3, 2), w, b), [normal(4, 3, 2), normal(3, 2), normal(3, 2)])
add("rmsNorm", lambda x, w, o, t: F.rms_norm(x, (6,), w, eps=2**-23), [normal(4, 6) * 3, normal(6)])
add("groupNorm", lambda x, w, b, o, t: last(F.group_norm(first(x), o["groups"], w, b)), [normal(2, 3, 2, 6), normal(6), normal(6)], {"groups": 3})
add("groupNorm", lambda x, w, b, o, t: last(F.group_norm(first(x), o["groups"], w, b)), [normal(2, 3, 4), normal(4), normal(4)], {"groups": 1})


def attention(q, k, v, o, t):
    mask = t.get("mask")
    if mask is not None and not mask.is_floating_point():
        mask = mask.bool()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=o.get("isCausal", False), scale=o.get("scale"))


heads = [normal(2, 2, 4, 3), normal(2, 2, 5, 3), normal(2, 2, 5, 2)]
nowhere = (torch.rand(2, 1, 4, 5) < 0.6).int()
nowhere[0, 0, 1] = 0
bias = normal(4, 5)
bias[2, 1] = -float("inf")
add("scaledDotProductAttention", attention, heads)
add("scaledDotProductAttention", attention, heads, {"isCausal": True})
add("scaledDotProductAttention", attention, heads, {"scale": 0.3}, {"mask": nowhere})
add("scaledDotProductAttention", attention, heads, {}, {"mask": normal(2, 4, 5)})
add("scaledDotProductAttention", attention, [normal(6, 3), normal(4, 3), normal(4, 3)], {"isCausal": True, "scale": 2.0})

print(json.dumps({"torch": torch.__version__, "cases": cases}, separators=(",", ":")))

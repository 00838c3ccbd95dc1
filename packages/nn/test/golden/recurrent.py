"""Values and gradients of recurrent layers in float64, by torch 1.13.1: `python recurrent.py > recurrent.json`.

Each case is a layer of torch.nn with its state dict, an input, states, and the gradients of a weighted sum of all results.
"""

import json

import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(3)


def listed(x):
    return {"shape": list(x.shape), "values": [round(v, 12) for v in x.detach().flatten().tolist()]}


def weights_like(x):
    """Numbers by which results are multiplied before they are added up."""
    return torch.cos(torch.arange(x.numel()).reshape(x.shape) * 0.7)


def case(kind, features, hidden, length, batch, **options):
    layer = getattr(torch.nn, kind)(features, hidden, **options)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.round(p * 64) / 64)
    shape = [batch, length, features] if options.get("batch_first") else [length, batch, features]
    x = (torch.round(torch.randn(shape) * 16) / 16).requires_grad_()
    states = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    h0 = (torch.round(torch.randn(states, batch, hidden) * 16) / 16).requires_grad_()
    c0 = (torch.round(torch.randn(states, batch, hidden) * 16) / 16).requires_grad_()
    if kind == "LSTM":
        y, (h, c) = layer(x, (h0, c0))
        results = [y, h, c]
    else:
        y, h = layer(x, h0)
        results = [y, h]
    sum((r * weights_like(r)).sum() for r in results).backward()
    return {
        "kind": kind,
        "options": options,
        "x": listed(x),
        "states": [listed(h0)] + ([listed(c0)] if kind == "LSTM" else []),
        "parameters": {name: listed(p) for name, p in layer.named_parameters()},
        "results": [listed(r) for r in results],
        "gradients": {
            "x": listed(x.grad),
            "hidden": listed(h0.grad),
            **({"cell": listed(c0.grad)} if kind == "LSTM" else {}),
            **{name: listed(p.grad) for name, p in layer.named_parameters()},
        },
    }


cases = [
    case("LSTM", 3, 4, 5, 2),
    case("LSTM", 2, 3, 3, 2, num_layers=2, bidirectional=True),
    case("LSTM", 3, 4, 2, 1, bias=False, batch_first=True),
    case("GRU", 3, 4, 5, 2),
    case("GRU", 2, 3, 3, 2, num_layers=2, bidirectional=True, batch_first=True),
    case("GRU", 3, 4, 2, 1, bias=False),
]
print(json.dumps(cases, separators=(",", ":")))

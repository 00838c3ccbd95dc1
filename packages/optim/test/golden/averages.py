"""Averages of torch.optim.swa_utils over a sequence of parameters: writes averages.json beside this file.

Made with torch 2.13.0+cpu and Python 3: python averages.py
"""

import json
from pathlib import Path

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn

# Dyadic numbers, so that any optimizer reaches them exactly.
SEQUENCE = [
    [1.0, -2.0, 0.5],
    [0.75, -1.5, 0.625],
    [0.5, -1.75, -0.25],
    [0.875, -1.25, -0.125],
    [-0.125, -3.0, 4.0],
    [0.25, 2.5, 0.0],
]


def averages(avg_fn):
    model = torch.nn.Linear(3, 1, bias=False)
    averaged = AveragedModel(model, avg_fn=avg_fn)
    results = []
    for values in SEQUENCE:
        with torch.no_grad():
            model.weight.copy_(torch.tensor([values]))
        averaged.update_parameters(model)
        results.append(averaged.module.weight[0].tolist())
    return results


path = Path(__file__).with_name("averages.json")
path.write_text(
    json.dumps(
        {
            "sequence": SEQUENCE,
            "swa": averages(None),
            "ema 0.9": averages(get_ema_avg_fn(0.9)),
            "ema 0.999": averages(get_ema_avg_fn(0.999)),
        },
        indent=1,
    )
    + "\n"
)

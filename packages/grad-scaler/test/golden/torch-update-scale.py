"""Writes torch-update-scale.json: what torch._amp_update_scale_ does over random traces.

Made with torch 2.13.0 (CPU). Run: python torch-update-scale.py
Factors are float32 numbers, as the rules of this package hold them. Scales are given as float32 bits in hexadecimal,
eight digits a step.
"""
import json
import pathlib
import random

import numpy as np
import torch

cases = [
    dict(initScale=65536.0, growthFactor=2.0, backoffFactor=0.5, growthInterval=3),
    dict(initScale=1000.0, growthFactor=1.7, backoffFactor=0.3, growthInterval=2),
    dict(initScale=1e38, growthFactor=1.7, backoffFactor=0.3, growthInterval=1),
    dict(initScale=2.0**-120, growthFactor=2.0, backoffFactor=0.5, growthInterval=4),
    dict(initScale=1e-36, growthFactor=1.7, backoffFactor=0.3, growthInterval=3),
]
rng = random.Random(7)
out = []
for case in cases:
    factors = {k: float(np.float32(v)) if k != "growthInterval" else v for k, v in case.items()}
    scale = torch.tensor(factors["initScale"], dtype=torch.float32)
    tracker = torch.zeros((), dtype=torch.int32)
    trace, scales, trackers = "", "", []
    for step in range(240):
        overflow = rng.random() < (0.1 if (step // 48) % 2 == 0 else 0.8)
        torch._amp_update_scale_(
            scale,
            tracker,
            torch.tensor(float(overflow)),
            factors["growthFactor"],
            factors["backoffFactor"],
            factors["growthInterval"],
        )
        trace += "!" if overflow else "."
        scales += f"{int(scale.numpy().view(np.uint32)):08x}"
        trackers.append(int(tracker))
    out.append(dict(options=factors, trace=trace, scaleBits=scales, trackers=" ".join(map(str, trackers))))
# A tracker that is loaded beyond the interval never grows again.
scale, tracker = torch.tensor(4.0), torch.tensor(9, dtype=torch.int32)
for _ in range(3):
    torch._amp_update_scale_(scale, tracker, torch.tensor(0.0), 2.0, 0.5, 5)
out.append(
    dict(
        options=dict(initScale=4.0, growthFactor=2.0, backoffFactor=0.5, growthInterval=5),
        startTracker=9,
        trace="...",
        scaleBits=f"{int(scale.numpy().view(np.uint32)):08x}" * 3,
        trackers=f"10 11 {int(tracker)}",
    )
)
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(out, indent=2) + "\n")

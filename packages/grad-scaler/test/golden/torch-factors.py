"""Writes torch-factors.json: scales under factors that float32 cannot represent.

torch's _amp_update_scale_ holds the scale in float32 and the factors in float64: `static_cast<float>(*current_scale * growth_factor)`
of ATen/native/cuda/AmpKernels.cu and its CPU kernel, transcribed with numpy 2.4. Run: python torch-factors.py
Scales are given as float32 bits in hexadecimal, eight digits a step.
"""
import json
import pathlib
import random

import numpy as np

rng = random.Random(3)
out = []
for _ in range(48):
    growth, backoff = 1 + 2 * rng.random(), 0.1 + 0.85 * rng.random()
    interval = rng.randint(1, 3)
    scale, tracker = np.float32(2.0 ** rng.randint(-20, 40)), 0
    start, trace, bits = float(scale), "", ""
    for _ in range(40):
        overflow = rng.random() < 0.3
        tracker = 0 if overflow else tracker + 1
        if overflow:
            scale = np.float32(np.float64(scale) * np.float64(backoff))
        elif tracker == interval:
            scale, tracker = np.float32(np.float64(scale) * np.float64(growth)), 0
        trace += "!" if overflow else "."
        bits += f"{int(scale.view(np.uint32)):08x}"
    options = dict(initScale=start, growthFactor=growth, backoffFactor=backoff, growthInterval=interval)
    out.append(dict(options=options, trace=trace, scaleBits=bits))
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(out, indent=1) + "\n")

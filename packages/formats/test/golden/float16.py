"""Writes float16.json: float64 bit patterns and the float16 codes that numpy rounds them to (nearest even, once).

Run: python3 float16.py > float16.json   (made with numpy 2.4.6)
"""

import random

import numpy as np

random.seed(1)
numbers = [0.0, -0.0, float("inf"), -float("inf"), 65504.0, 65519.99, 65520.0, -65520.0, 1e300, 5e-324, 5.96e-8]
for exponent in range(-27, 17):
    for step in (0, 1, 2, 511, 1022, 1023):
        unit = 2.0 ** max(exponent - 10, -24)
        tie = 2.0**exponent + (step + 0.5) * unit
        numbers += [np.nextafter(tie, -np.inf), tie, np.nextafter(tie, np.inf)]
numbers += [random.choice((-1, 1)) * random.random() * 2.0 ** random.randint(-28, 18) for _ in range(400)]

doubles = np.array(numbers, dtype=np.float64)
with np.errstate(over="ignore"):
    codes = doubles.astype(np.float16).view(np.uint16)
rows = [f'["{bits:016x}", {code}]' for bits, code in zip(doubles.view(np.uint64).tolist(), codes.tolist())]
print("[\n  " + ",\n  ".join(rows) + "\n]")

"""Writes formats.json: what ml_dtypes and numpy decode, and codes of every rounding from exact fractions.

Run: python3 formats.py > formats.json   (made with numpy 2.4.6, ml_dtypes 0.6.0, torch 2.13.0, Python 3.11)

The codes come from a search among exact fractions, which shares nothing with the library's exponent arithmetic. For
"nearestEven" they are compared with numpy, ml_dtypes and torch here; the recipe fails at a difference that it cannot name, and
counts the others on stderr.

A number is the hexadecimal float64 without its trailing zeros. A row is [number, codes, choices]: choices holds one digit, an
index into codes, for each of nearestEven, nearestAway, towardZero, down, up, odd, and stochastic with the four words of WORDS;
then the same ten with saturate. The code -1 stands for a refusal.
"""

import math
import random
import sys
from bisect import bisect_right
from collections import Counter
from fractions import Fraction

import ml_dtypes
import numpy as np
import torch

# name: exponent bits, mantissa bits, bias, NaN encoding, the type that knows it
FORMATS = {
    "float16": (5, 10, 15, "ieee", np.float16),
    "bfloat16": (8, 7, 127, "ieee", ml_dtypes.bfloat16),
    "tfloat32": (8, 10, 127, "ieee", None),
    "float32": (8, 23, 127, "ieee", np.float32),
    "float8e4m3fn": (4, 3, 7, "allOnes", ml_dtypes.float8_e4m3fn),
    "float8e5m2": (5, 2, 15, "ieee", ml_dtypes.float8_e5m2),
    "float8e4m3fnuz": (4, 3, 8, "negativeZero", ml_dtypes.float8_e4m3fnuz),
    "float8e5m2fnuz": (5, 2, 16, "negativeZero", ml_dtypes.float8_e5m2fnuz),
    "float8e4m3b11fnuz": (4, 3, 11, "negativeZero", ml_dtypes.float8_e4m3b11fnuz),
    "float8e4m3": (4, 3, 7, "ieee", ml_dtypes.float8_e4m3),
    "float8e3m4": (3, 4, 3, "ieee", ml_dtypes.float8_e3m4),
    "float8e8m0fnu": (8, 0, 127, "allOnes", ml_dtypes.float8_e8m0fnu),
    "float6e2m3fn": (2, 3, 1, "none", ml_dtypes.float6_e2m3fn),
    "float6e3m2fn": (3, 2, 3, "none", ml_dtypes.float6_e3m2fn),
    "float4e2m1fn": (2, 1, 1, "none", ml_dtypes.float4_e2m1fn),
}
# torch 2.13 saturates e4m3fn, infinities too, and no other format. It knows NaN, but has codes of its own for it.
TORCH = {
    "float8e4m3fn": (torch.float8_e4m3fn, True),
    "float8e5m2": (torch.float8_e5m2, False),
    "float8e4m3fnuz": (torch.float8_e4m3fnuz, False),
    "float8e5m2fnuz": (torch.float8_e5m2fnuz, False),
}
ROUNDINGS = ("nearestEven", "nearestAway", "towardZero", "down", "up", "odd")
WORDS = (0, 0x5A5A5A5A, 0x00FFFFFF, 0xFFFFFFFF)

random.seed(3)
differences = Counter()


def bits_of(number):
    return np.array([number]).view(np.uint64)[0]


def packed(number):
    return f"{bits_of(number):016x}".rstrip("0")


def ulp(number, mantissa_bits, smallest_exponent):
    return Fraction(2) ** (max(math.frexp(number)[1] - 1, smallest_exponent) - mantissa_bits)


class Format:
    def __init__(self, name):
        self.name = name
        self.exponent_bits, self.mantissa_bits, self.bias, self.nan_encoding, self.type = FORMATS[name]
        self.is_scale = name == "float8e8m0fnu"
        self.bits = self.exponent_bits + self.mantissa_bits + (not self.is_scale)
        self.sign = 0 if self.is_scale else 1 << (self.bits - 1)
        magnitudes = 1 << (self.exponent_bits + self.mantissa_bits)
        # Codes of finite magnitudes: those below this one.
        self.finite = {
            "ieee": magnitudes - (1 << self.mantissa_bits),
            "allOnes": magnitudes - 1,
            "negativeZero": magnitudes,
            "none": magnitudes,
        }[self.nan_encoding]
        self.nan = {
            "ieee": self.finite + (1 << self.mantissa_bits >> 1),
            "allOnes": self.finite,
            "negativeZero": magnitudes,
            "none": -1,
        }[self.nan_encoding]

    def value(self, code):
        """The magnitude of a code; past the last finite code, what its successor would be."""
        field, mantissa = divmod(code, 1 << self.mantissa_bits)
        fraction = Fraction(mantissa, 1 << self.mantissa_bits)
        if field == 0 and not self.is_scale:
            return fraction * Fraction(2) ** (1 - self.bias)
        return (1 + fraction) * Fraction(2) ** (field - self.bias)

    def overflow(self, negative, saturate):
        if saturate or self.nan_encoding == "none":
            return (self.sign if negative else 0) + self.finite - 1
        if self.nan_encoding == "negativeZero":
            return self.nan
        return (self.sign if negative else 0) + self.finite

    def encode(self, number, rounding, word, saturate):
        negative = math.copysign(1, number) < 0
        if math.isnan(number):
            return self.finite - 1 if saturate and self.nan < 0 else self.nan
        if self.is_scale and number <= 0:
            return 0 if saturate and number == 0 else self.nan
        if math.isinf(number):
            return self.overflow(negative, saturate)
        x = abs(Fraction(number))
        below = bisect_right(range(self.finite), x, key=self.value) - 1
        if below < 0:
            return 0
        low, high = self.value(below), self.value(below + 1)
        # A number beyond this virtual successor is beyond every tie too.
        part = min((x - low) / (high - low), Fraction(2))
        away = {
            "nearestEven": part > Fraction(1, 2) or (part == Fraction(1, 2) and (below % 2 == 1 or self.is_scale)),
            "nearestAway": part >= Fraction(1, 2),
            "towardZero": False,
            "down": part > 0 and negative,
            "up": part > 0 and not negative,
            "odd": part > 0 and below % 2 == 0 and below + 1 < self.finite and not self.is_scale,
            "stochastic": part >= 1 or (part > 0 and self.stochastic(abs(number), part, high - low, word)),
        }[rounding]
        code = below + bool(away)
        if code == self.finite:
            return self.overflow(negative, saturate)
        if code == 0 and self.nan_encoding == "negativeZero":
            return 0
        return (self.sign if negative else 0) + code

    def stochastic(self, number, part, unit, word):
        last = ulp(number, 52, -1022) if self.name == "float32" else ulp(number, 23, -126)
        places = min(int(math.log2(unit / last)), 32)
        return part + Fraction(word % (1 << places), 1 << places) >= 1

    def choices(self, number):
        codes = [
            self.encode(number, rounding, word, saturate)
            for saturate in (False, True)
            for rounding, word in [(r, 0) for r in ROUNDINGS] + [("stochastic", w) for w in WORDS]
        ]
        distinct = sorted(set(codes))
        self.compare(number, codes[0])
        if self.name in TORCH:
            self.compare_with_torch(number)
        return f'["{packed(number)}", {distinct}, "{"".join(str(distinct.index(c)) for c in codes)}"]'

    def theirs(self, number):
        unsigned = {8: np.uint8, 16: np.uint16, 32: np.uint32}[max(self.bits, 8)]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return int(np.array([number], np.float64).astype(self.type).view(unsigned)[0])

    def compare_with_torch(self, number):
        dtype, saturate = TORCH[self.name]
        number = torch.tensor(number, dtype=torch.float64).float()
        if number.isnan():
            return
        code, other = self.encode(number.item(), "nearestEven", 0, saturate), number.to(dtype).view(torch.uint8).item()
        if code != other:
            sys.exit(f"{self.name} {number!r}: {code:#x} here, {other:#x} in {dtype}")

    def compare(self, number, code):
        if self.type is None:
            return
        other = self.theirs(number)
        if other == code:
            return
        with np.errstate(over="ignore", under="ignore"):
            narrowed = float(np.float32(number))
        if math.isnan(number) and self.nan < 0:
            reason = "NaN becomes -0"
        elif self.encode(narrowed, "nearestEven", 0, False) == other:
            reason = "rounded twice, through float32"
        else:
            sys.exit(f"{self.name} {number!r}: {code:#x} here, {other:#x} in {self.type.__name__}")
        differences[f"{self.name}: {reason}"] += 1

    def numbers(self):
        """Specials, ends, and ties of codes at every kind of place, with their float64 neighbours."""
        yield from (0.0, -0.0, math.inf, -math.inf, math.nan, 1e300, -1e300, 5e-324, -5e-324, 2.0**-1022, 1.0, -1.0)
        finite, step = self.finite, 1 << self.mantissa_bits
        places = {0, 1, 2, step - 1, step, step + 1, finite - 2, finite - 1}
        places |= {random.randrange(finite) for _ in range(6)} | {random.randrange(min(finite, 4 * step)) for _ in range(2)}
        for code in sorted(p for p in places if 0 <= p < finite):
            low, high = self.value(code), self.value(code + 1)
            tie = float((low + high) / 2)
            sign = -1 if code % 3 == 1 and not self.is_scale else 1
            for number in (float(low), math.nextafter(tie, 0), tie, math.nextafter(tie, math.inf), tie * (1 + 2.0**-40)):
                yield sign * number
            yield sign * float(low + (high - low) * Fraction(random.random()))
        for _ in range(12):
            low = self.value(random.randrange(finite))
            yield random.choice((-1, 1)) * float(low) * random.random()


def decoded(form):
    codes = np.arange(1 << form.bits, dtype=np.uint8).view(form.type)
    values = codes.astype(np.float64)
    return " ".join("nan" if np.isnan(v) else packed(v) for v in values)


sections = []
for name in FORMATS:
    form = Format(name)
    rows = ",\n      ".join(form.choices(n) for n in form.numbers())
    table = f'"decoded": "{decoded(form)}",\n    ' if form.bits <= 8 else ""
    sections.append(f'"{name}": {{\n    {table}"rows": [\n      {rows}\n    ]\n  }}')
print("{\n  " + ",\n  ".join(sections) + "\n}")
for reason, count in differences.items():
    print(f"{count:4} {reason}", file=sys.stderr)

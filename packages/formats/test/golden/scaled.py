"""Golden vectors of scaled and block formats, made with numpy 2.4.6 and ml_dtypes 0.6.0: python scaled.py > scaled.json

Scales are computed here with exact fractions, elements are the nearest of ml_dtypes' numbers. MX's floor, ceil and even are asserted to be
what bit operations on float32 give, as torchao writes them.
"""
import base64
import json
from fractions import Fraction

import ml_dtypes
import numpy as np

ELEMENTS = {
    "float8e4m3fn": (ml_dtypes.float8_e4m3fn, 3),
    "float8e5m2": (ml_dtypes.float8_e5m2, 2),
    "float6e3m2fn": (ml_dtypes.float6_e3m2fn, 2),
    "float6e2m3fn": (ml_dtypes.float6_e2m3fn, 3),
    "float4e2m1fn": (ml_dtypes.float4_e2m1fn, 1),
}


def text(array):
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def inputs():
    rng = np.random.default_rng(20240607)
    blocks = []
    for power in [0, -8, 20, -126, -140, 120]:
        blocks.append(rng.standard_normal(32) * 2.0**power)
    blocks.append(rng.standard_normal(32) * 2.0 ** rng.integers(-12, 12, 32))
    # The largest magnitude at the places where the rules change their mind.
    for dtype, mantissa in ELEMENTS.values():
        top = float(ml_dtypes.finfo(dtype).max)
        for amax in [top, 2 - 2.0 ** (-mantissa - 1), 1.0]:
            for ulps in [-1, 0, 1]:
                edge = np.float32(amax)
                edge = edge if ulps == 0 else np.nextafter(edge, np.float32(ulps * np.inf))
                block = rng.uniform(-1, 1, 32) * amax * 0.9
                block[rng.integers(32)] = edge
                blocks.append(block)
    blocks.append(np.zeros(32))
    blocks.append(np.where(np.arange(32) % 2, -0.0, 2.0**-149))
    blocks.append(rng.standard_normal(32) * 1e-30)
    blocks.append(np.full(32, np.finfo(np.float32).max / 2))
    return np.concatenate(blocks).astype(np.float32)


def floor_log2(x):
    """Of a positive Fraction."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def ceil_log2(x):
    e = floor_log2(x)
    return e if Fraction(2) ** e == x else e + 1


def mx_exponent(amax, name, rule):
    dtype, mantissa = ELEMENTS[name]
    top = Fraction(float(ml_dtypes.finfo(dtype).max))
    emax = floor_log2(top)
    if amax == 0:
        return -127
    x = Fraction(float(amax))
    if rule == "floor":
        e = floor_log2(x) - emax
    elif rule == "ceil":
        e = ceil_log2(x) - emax
    elif rule == "rceil":
        e = ceil_log2(x / top)
    else:
        unit = Fraction(2) ** (floor_log2(x) - mantissa)
        e = floor_log2((x / unit + Fraction(1, 2)).__floor__() * unit) - emax
    return min(max(e, -127), 127)


def float32_exponent(amax, name, rule):
    dtype, mantissa = ELEMENTS[name]
    bits = int(np.float32(amax).view(np.uint32))
    emax = floor_log2(Fraction(float(ml_dtypes.finfo(dtype).max)))
    if rule == "even":
        bits = (bits + (1 << (23 - mantissa - 1))) & 0xFF800000
    e = (bits >> 23) - 127 + (1 if rule == "ceil" and bits & 0x7FFFFF else 0)
    return min(max(e - emax, -127), 128)


def encode(values, dtype):
    """Nearest even, saturated, by searching the midpoints of ml_dtypes' numbers: its own casts go through float32."""
    top = float(ml_dtypes.finfo(dtype).max)
    count = int(np.array(top, dtype).view(np.uint8)) + 1
    numbers = np.arange(count, dtype=np.uint8).view(dtype).astype(np.float64)
    middles = (numbers[:-1] + numbers[1:]) / 2
    magnitude = np.atleast_1d(np.abs(values))
    codes = np.searchsorted(middles, magnitude, side="left")
    at = np.minimum(codes, len(middles) - 1)
    is_tie = magnitude == middles[at]
    codes = np.where(is_tie, at + at % 2, codes)
    sign = 1 << (ml_dtypes.finfo(dtype).bits - 1)
    return np.uint8(codes + sign * np.signbit(np.atleast_1d(values)))


def mx(values, columns, name, rule):
    scales, codes = [], []
    for row in values.reshape(-1, columns):
        for start in range(0, columns, 32):
            block = row[start : start + 32].astype(np.float64)
            amax = np.abs(block).max()
            e = mx_exponent(amax, name, rule)
            if rule != "rceil":
                assert e == float32_exponent(amax, name, rule), (amax, name, rule)
            scales.append(e + 127)
            codes.append(encode(block / 2.0**e, ELEMENTS[name][0]))
    return {"format": name, "rule": rule, "columns": columns, "scales": text(np.uint8(scales)), "codes": text(np.concatenate(codes))}


def nvfp4(values, columns):
    amax = np.abs(values.astype(np.float64)).max()
    tensor = float(np.float32(max(amax / 2688, 2.0**-126)))
    scales, codes = [], []
    for row in values.reshape(-1, columns):
        for start in range(0, columns, 16):
            block = row[start : start + 16].astype(np.float64)
            top = np.abs(block).max()
            code = int(encode(np.float64(top / 6 / tensor), ml_dtypes.float8_e4m3fn)[0])
            code = max(code, 1) if top > 0 else 0
            scale = float(np.uint8(code).view(ml_dtypes.float8_e4m3fn)) * tensor
            scales.append(code)
            codes.append(encode(block / scale, ml_dtypes.float4_e2m1fn) if scale else np.zeros(len(block), np.uint8))
    return {"columns": columns, "tensorScale": tensor, "scales": text(np.uint8(scales)), "codes": text(np.concatenate(codes))}


def scaled(values, columns, name, power_of_two):
    dtype, _ = ELEMENTS[name]
    top = float(ml_dtypes.finfo(dtype).max)
    scales, codes = [], []
    for row in values.reshape(-1, columns):
        amax = float(np.abs(row).max())
        if amax == 0:
            scale = 1.0
        elif power_of_two:
            scale = 2.0 ** min(max(ceil_log2(Fraction(amax) / Fraction(top)), -126), 127)
        else:
            scale = float(np.float32(max(amax / top, 2.0**-126)))
        scales.append(scale)
        codes.append(encode(row.astype(np.float64) / scale, dtype))
    return {"format": name, "columns": columns, "powerOfTwo": power_of_two, "scales": text(np.float32(scales)), "codes": text(np.concatenate(codes))}


values = inputs()
tail = values[: 7 * 45].copy()
print(
    json.dumps(
        {
            "values": text(values),
            "mx": [mx(values, len(values), name, rule) for name in ELEMENTS for rule in ["floor", "ceil", "even", "rceil"]],
            # Rows of 45 end in blocks of 13.
            "mxRows": [mx(tail, 45, name, "floor") for name in ELEMENTS],
            "nvfp4": [nvfp4(values[: 7 * 32], 7 * 32), nvfp4(tail, 45), nvfp4(values[:96], 96)],
            "scaled": [
                scaled(values, columns, name, power)
                for name in ["float8e4m3fn", "float8e5m2"]
                for columns in [len(values), 32]
                for power in [False, True]
            ],
        },
        indent=1,
    )
)

"""Values and gradients of ops in float32 at zeros, ties, kinks, ends of the range, infinities and NaN, by torch 2.13.0 on a CPU:
`python special-values.py > special-values.json`. With names of cases only these are computed, and the others are taken from the file: those
of the entry `functional` are of torch 1.13.1. Write to another file first.

Every op is applied to each combination of `values` of its arity, and its gradients are taken with each of `gradients` as the
gradient of the result. Functions of rows are applied to each row of `rows` with `rowGradient`.
"""

import itertools
import json
import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

nan, inf = math.nan, math.inf
values = {
    1: [0.0, -0.0, 1e-30, -1e-30, 0.25, -0.25, 0.5, -0.5, 1, -1, 1.5, -1.5, 2, -2, 3, -3, 6, 20, -20, 20.5]
    + [-20.5, 60, -60, 1e4, -1e4, 3.4028235e38, -3.4028235e38, inf, -inf, nan],
    2: [0.0, -0.0, 0.5, 1, -1, 2, -3, 3.4028235e38, inf, -inf, nan],
    3: [0.0, -0.5, 2, inf, -inf, nan],
}
gradients = [1.5, -0.0, inf, nan]
rows = [
    *([a, b, 0.5] for a in (0.5, nan, inf, -inf, 3.4028235e38) for b in (0.5, -1, inf, -inf)),
    [nan, nan, nan],
    [inf, inf, inf],
    [-inf, -inf, -inf],
]
row_gradient = [0.5, -1, 2]


def plain(x):
    """Numbers as short as float32 allows, and strings where JSON has none."""
    return [float(str(numpy.float32(v))) if math.isfinite(v) else str(v) for v in x]


def leaves(columns, wanted):
    return [torch.tensor(c, dtype=torch.float32, requires_grad=i < wanted) for i, c in enumerate(columns)]


chosen = sys.argv[1:]
known = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())["cases"] if chosen else {}
cases = {name: known[name] for name in known if name not in chosen}
is_chosen = lambda name: not chosen or name in chosen


def case(name, arity, f, wanted=None):
    """`wanted` gradients: of so many of the operands, by default all."""
    if not is_chosen(name):
        return
    wanted = arity if wanted is None else wanted
    columns = list(zip(*itertools.product(values[arity], repeat=arity)))
    with torch.no_grad():
        result = plain(f(*leaves(columns, 0)).to(torch.float32).tolist())
    derivatives = []
    for g in gradients if wanted else []:
        inputs = leaves(columns, wanted)
        y = f(*inputs)
        found = torch.autograd.grad(y, inputs[:wanted], torch.full_like(y, g), allow_unused=True)
        derivatives.append([None if d is None else plain(d.tolist()) for d in found])
    cases[name] = {"arity": arity, "result": result, "gradients": derivatives}


def of_rows(name, f):
    if not is_chosen(name):
        return
    x = torch.tensor(rows, dtype=torch.float32, requires_grad=True)
    y = f(x)
    g = torch.tensor(row_gradient)[: y.shape[-1]].expand_as(y) if y.dim() == 2 else torch.full_like(y, 1.5)
    (d,) = torch.autograd.grad(y, [x], g)
    cases[name] = {"result": plain(y.flatten().tolist()), "gradients": plain(d.flatten().tolist())}


for name in "relu sigmoid tanh exp expm1 log log1p log2 log10 reciprocal rsqrt sqrt square abs sin cos tan asin acos atan".split():
    case(name, 1, getattr(torch, name))
for name in "sinh cosh erf erfinv neg sign floor ceil round".split():
    case(name, 1, getattr(torch, name))
case("silu", 1, F.silu)
case("gelu", 1, F.gelu)
case("gelu by tanh", 1, lambda x: F.gelu(x, approximate="tanh"))
case("elu", 1, lambda x: F.elu(x, 0.5))
case("leakyRelu", 1, lambda x: F.leaky_relu(x, 0.25))
case("clamp", 1, lambda x: x.clamp(-0.5, 1))
case("clamp from below", 1, lambda x: x.clamp(min=-0.5))
case("clamp from above", 1, lambda x: x.clamp(max=1))
case("hardtanh", 1, F.hardtanh)
case("softplus", 1, F.softplus)
case("softplus of 2x", 1, lambda x: F.softplus(x, 2, 3))
case("scale", 1, lambda x: x * -0.5)
case("addScalar", 1, lambda x: x + 0.5)
for c in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5):
    case(f"pow by {c}", 1, lambda x: x**c)

for name in "add sub mul div maximum minimum atan2 pow".split():
    case(name, 2, getattr(torch, name))
for name in "eq ne lt le gt ge".split():
    case(name, 2, getattr(torch, name), wanted=0)
for name in "isnan isinf isfinite".split():
    case(name, 1, getattr(torch, name), wanted=0)
case("prelu", 2, lambda x, w: torch.prelu(x.reshape(1, -1), w).reshape(-1))
case("where", 3, lambda m, a, b: torch.where(m != 0, a, b))
case("maskedFill", 2, lambda x, m: x.masked_fill(m != 0, 2))
case("addcmul", 3, lambda x, a, b: torch.addcmul(x, a, b, value=0.5))
case("addcdiv", 3, lambda x, a, b: torch.addcdiv(x, a, b, value=0.5))

none = {"reduction": "none"}
case("l1Loss", 2, lambda x, t: F.l1_loss(x, t, **none))
case("mseLoss", 2, lambda x, t: F.mse_loss(x, t, **none))
case("smoothL1Loss", 2, lambda x, t: F.smooth_l1_loss(x, t, **none))
case("smoothL1Loss of 2", 2, lambda x, t: F.smooth_l1_loss(x, t, beta=2, **none))
case("smoothL1Loss of 0", 2, lambda x, t: F.smooth_l1_loss(x, t, beta=0, **none))
case("huberLoss", 2, lambda x, t: F.huber_loss(x, t, **none))
case("huberLoss of 2", 2, lambda x, t: F.huber_loss(x, t, delta=2, **none))
case("klDiv", 2, lambda x, t: F.kl_div(x, t, **none))
case("klDiv of logarithms", 2, lambda x, t: F.kl_div(x, t, log_target=True, **none))
case("poissonNllLoss", 2, lambda x, t: F.poisson_nll_loss(x, t, **none))
case("poissonNllLoss of rates", 2, lambda x, t: F.poisson_nll_loss(x, t, log_input=False, **none))
case("binaryCrossEntropyWithLogits", 2, lambda x, t: F.binary_cross_entropy_with_logits(x, t, **none))
case("softMarginLoss", 2, lambda x, t: F.soft_margin_loss(x, t, **none), wanted=1)
case("hingeEmbeddingLoss", 2, lambda x, t: F.hinge_embedding_loss(x, t, **none))
case("marginRankingLoss", 3, lambda a, b, t: F.margin_ranking_loss(a, b, t, **none))

of_rows("softmax", lambda x: F.softmax(x, -1))
of_rows("logSoftmax", lambda x: F.log_softmax(x, -1))
of_rows("logsumexp", lambda x: torch.logsumexp(x, -1))
of_rows("crossEntropy", lambda x: F.cross_entropy(x, torch.ones(len(rows), dtype=torch.long), **none))
of_rows("smoothed crossEntropy", lambda x: F.cross_entropy(x, torch.ones(len(rows), dtype=torch.long), label_smoothing=0.25, **none))
of_rows("amax", lambda x: x.amax(-1))
of_rows("amin", lambda x: x.amin(-1))
of_rows("max", lambda x: x.max(-1).values)
of_rows("min", lambda x: x.min(-1).values)
of_rows("sum", lambda x: x.sum(-1))
of_rows("mean", lambda x: x.mean(-1))
of_rows("prod", lambda x: x.prod(-1))
of_rows("norm", lambda x: x.norm(dim=-1))
of_rows("norm of 1", lambda x: torch.linalg.vector_norm(x, 1, -1))
of_rows("norm of infinity", lambda x: torch.linalg.vector_norm(x, inf, -1))
of_rows("variance", lambda x: x.var(-1))
of_rows("layerNorm", lambda x: F.layer_norm(x, [3]))
of_rows("maxPool2d", lambda x: F.max_pool2d(x.reshape(-1, 1, 3, 1), (3, 1)).reshape(-1))

case("lerp near", 2, lambda a, b: torch.lerp(a, b, 0.25))
case("lerp far", 2, lambda a, b: torch.lerp(a, b, 0.75))
case("lerp by a tensor", 3, torch.lerp)


def of_one_unit(layer, gates):
    """A step of a recurrent layer of one unit, from a state of 0.5. All weights are 0.5."""
    half = torch.full([1, 1, 1], 0.5)
    weights = [torch.full([gates, 1], 0.5), torch.full([gates, 1], 0.5)]
    states = lambda x: half.expand(1, len(x), 1)
    return {
        "lstm": lambda x: torch.lstm(x.reshape(1, -1, 1), [states(x), states(x)], weights, False, 1, 0.0, False, False, False)[0],
        "gru": lambda x: torch.gru(x.reshape(1, -1, 1), states(x), weights, False, 1, 0.0, False, False, False)[0],
    }[layer]


case("lstm", 1, lambda x: of_one_unit("lstm", 4)(x).reshape(-1))
case("gru", 1, lambda x: of_one_unit("gru", 3)(x).reshape(-1))
of_rows("sort", lambda x: x.sort(dim=-1, stable=True).values)
of_rows("sort, descending", lambda x: x.sort(dim=-1, stable=True, descending=True).values)
of_rows("median", lambda x: x.median(-1).values)
of_rows("maxPool1d", lambda x: F.max_pool1d(x.reshape(-1, 1, 3), 3).reshape(-1))
of_rows("avgPool1d", lambda x: F.avg_pool1d(x.reshape(-1, 1, 3), 3).reshape(-1))
of_rows("adaptiveAvgPool1d", lambda x: F.adaptive_avg_pool1d(x.reshape(-1, 1, 3), 1).reshape(-1))
of_rows("tril", lambda x: x.reshape(-1, 1, 3).tril().reshape(-1, 3))
of_rows("triu", lambda x: x.reshape(-1, 1, 3).triu(1).reshape(-1, 3))

header = {"values": {str(n): plain(v) for n, v in values.items()}, "gradients": plain(gradients)}
header |= {"rows": [plain(r) for r in rows], "rowGradient": row_gradient}
lines = ",\n".join(f"    {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in cases.items())
head = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in header.items())
print(f'{{\n{head},\n  "cases": {{\n{lines}\n  }}\n}}')

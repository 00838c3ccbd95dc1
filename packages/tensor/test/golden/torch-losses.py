"""Golden vectors of losses and distances: values and gradients by torch, in float64, to nine decimals.

Made with torch 2.13.0+cpu, Python 3.11 or later: python torch-losses.py > torch-losses.json
Classes are last in the vectors, as in the library; torch has them second.
"""

import json

import torch
import torch.nn.functional as F

torch.manual_seed(7)
cases = []


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def unit(*shape):
    return torch.rand(*shape, dtype=torch.float64) * 0.98 + 0.01


def signs(*shape):
    return torch.where(torch.rand(*shape) < 0.5, -1.0, 1.0).double()


def classes_second(x):
    return x if x.dim() < 3 else x.movedim(-1, 1)


def add(op, function, inputs, options=None, tensors=None, needs=None):
    """function(*inputs, **options, **tensors); gradients of the floating inputs in `needs` (all by default)."""
    options, tensors = options or {}, tensors or {}
    leaves = [x.clone().requires_grad_() if x.is_floating_point() and (needs is None or i in needs) else x for i, x in enumerate(inputs)]
    result = function(*leaves, options, tensors)
    wanted = [x for x in leaves if x.requires_grad]
    weights = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64).reshape(result.shape)
    gradients = torch.autograd.grad((result * weights).sum(), wanted)
    cases.append({
        "op": op,
        "inputs": [pack(x) for x in inputs],
        "options": options,
        "tensors": {name: pack(x) for name, x in tensors.items()},
        "result": pack(result),
        "gradients": [pack(dict(zip(map(id, wanted), gradients)).get(id(x))) for x in leaves],
    })


def pack(x):
    if x is None:
        return None
    values = x.detach().reshape(-1).tolist()
    return {"shape": list(x.shape), "values": [round(v, 9) for v in values] if x.is_floating_point() else values, "isInteger": not x.is_floating_point()}


reductions = ["mean", "sum", "none"]

# Classification.
for shape in [(5, 4), (2, 3, 6)]:
    labels = torch.randint(shape[-1], shape[:-1])
    weight = unit(shape[-1])
    for reduction in reductions:
        for options in [{}, {"ignoreIndex": 1}, {"labelSmoothing": 0.2}, {"labelSmoothing": 0.3, "ignoreIndex": 2}]:
            for tensors in [{}, {"weight": weight}]:
                def cross_entropy(x, y, o, t):
                    return F.cross_entropy(classes_second(x), y, weight=t.get("weight"), ignore_index=o.get("ignoreIndex", -100), label_smoothing=o.get("labelSmoothing", 0.0), reduction=reduction)
                add("crossEntropy", cross_entropy, [normal(*shape), labels], {**options, "reduction": reduction}, tensors)
        for tensors in [{}, {"weight": weight}]:
            def nll(x, y, o, t):
                return F.nll_loss(classes_second(x), y, weight=t.get("weight"), ignore_index=o.get("ignoreIndex", -100), reduction=reduction)
            add("nllLoss", nll, [normal(*shape), labels], {"reduction": reduction}, tensors)
            add("nllLoss", nll, [normal(*shape), labels], {"reduction": reduction, "ignoreIndex": 0}, tensors)
            def spread(x, p, o, t):
                return F.cross_entropy(classes_second(x), classes_second(p), weight=t.get("weight"), label_smoothing=o.get("labelSmoothing", 0.0), reduction=reduction)
            probabilities = normal(*shape).softmax(-1)
            add("crossEntropy", spread, [normal(*shape), probabilities], {"reduction": reduction, "labelSmoothing": 0.1}, tensors)
    for p in [1, 2]:
        for tensors in [{}, {"weight": weight}]:
            def multi_margin(x, y, o, t):
                flat = F.multi_margin_loss(x.reshape(-1, x.shape[-1]), y.reshape(-1), p=o["p"], margin=o["margin"], weight=t.get("weight"), reduction=o["reduction"])
                return flat.reshape(y.shape) if o["reduction"] == "none" else flat
            for reduction in reductions:
                add("multiMarginLoss", multi_margin, [normal(*shape), labels], {"p": p, "margin": 0.7, "reduction": reduction}, tensors)
many = torch.tensor([[0, 3, -1, 1], [2, -1, 0, 0], [-1, 1, 2, 3], [3, 2, 1, 0]])
for reduction in reductions:
    add("multilabelMarginLoss", lambda x, y, o, t: F.multilabel_margin_loss(x, y, reduction=o["reduction"]), [normal(4, 4), many], {"reduction": reduction})

# Element by element.
for reduction in reductions:
    r = {"reduction": reduction}
    pair = [normal(3, 4), normal(3, 4)]
    add("l1Loss", lambda x, y, o, t: F.l1_loss(x, y, reduction=o["reduction"]), pair, r)
    add("mseLoss", lambda x, y, o, t: F.mse_loss(x, y, reduction=o["reduction"]), pair, r)
    for beta in [0.0, 0.5, 1.0]:
        add("smoothL1Loss", lambda x, y, o, t: F.smooth_l1_loss(x, y, beta=o["beta"], reduction=o["reduction"]), pair, {**r, "beta": beta})
    for delta in [0.5, 1.0]:
        add("huberLoss", lambda x, y, o, t: F.huber_loss(x, y, delta=o["delta"], reduction=o["reduction"]), pair, {**r, "delta": delta})
    probabilities = normal(3, 4).softmax(-1)
    zeros = probabilities.clone()
    zeros[0, 1] = 0
    add("klDiv", lambda x, y, o, t: F.kl_div(x, y, reduction=o["reduction"]), [normal(3, 4).log_softmax(-1), probabilities], r)
    add("klDiv", lambda x, y, o, t: F.kl_div(x, y, reduction=o["reduction"]), [normal(3, 4).log_softmax(-1), zeros], r, needs=[0])
    add("klDiv", lambda x, y, o, t: F.kl_div(x, y, reduction=o["reduction"], log_target=True), [normal(3, 4).log_softmax(-1), probabilities.log()], {**r, "logTarget": True})
    counts = torch.tensor([[0.0, 1, 2, 7], [3, 0, 1, 1], [2, 5, 9, 1]]).double()
    for log_input in [True, False]:
        for full in [True, False]:
            x = normal(3, 4) if log_input else unit(3, 4)
            add("poissonNllLoss", lambda x, y, o, t: F.poisson_nll_loss(x, y, log_input=o["logInput"], full=o["full"], reduction=o["reduction"]), [x, counts], {**r, "logInput": log_input, "full": full}, needs=[0])
    variance = unit(3, 4)
    variance[1, 1] = 1e-9
    for full in [True, False]:
        add("gaussianNllLoss", lambda x, y, v, o, t: F.gaussian_nll_loss(x, y, v, full=o["full"], eps=o["eps"], reduction=o["reduction"]), [*pair, variance], {**r, "full": full, "eps": 1e-2})
    targets = unit(3, 4).round()
    for tensors in [{}, {"weight": unit(4)}, {"posWeight": unit(4) * 3}, {"weight": unit(3, 4), "posWeight": unit(4) * 3}]:
        add("binaryCrossEntropyWithLogits", lambda x, y, o, t: F.binary_cross_entropy_with_logits(x, y, weight=t.get("weight"), pos_weight=t.get("posWeight"), reduction=o["reduction"]), [normal(3, 4) * 9, unit(3, 4)], r, tensors)
    certain = unit(3, 4)
    certain[0, 0], certain[0, 1], certain[0, 2], certain[0, 3] = 0, 0, 1, 1
    targets[0] = torch.tensor([0.0, 1, 0, 1])
    add("binaryCrossEntropy", lambda x, y, o, t: F.binary_cross_entropy(x, y, weight=t.get("weight"), reduction=o["reduction"]), [unit(3, 4), unit(3, 4)], r, {"weight": unit(3, 4)})
    add("binaryCrossEntropy", lambda x, y, o, t: F.binary_cross_entropy(x, y, reduction=o["reduction"]), [certain, targets], r, needs=[0])
    add("softMarginLoss", lambda x, y, o, t: F.soft_margin_loss(x, y, reduction=o["reduction"]), [normal(3, 4) * 9, signs(3, 4)], r, needs=[0])
    add("hingeEmbeddingLoss", lambda x, y, o, t: F.hinge_embedding_loss(x, y, margin=o["margin"], reduction=o["reduction"]), [normal(3, 4), signs(3, 4)], {**r, "margin": 0.8}, needs=[0])
    add("marginRankingLoss", lambda a, b, y, o, t: F.margin_ranking_loss(a, b, y, margin=o["margin"], reduction=o["reduction"]), [normal(6), normal(6), signs(6)], {**r, "margin": 0.3}, needs=[0, 1])
    add("cosineEmbeddingLoss", lambda a, b, y, o, t: F.cosine_embedding_loss(a, b, y, margin=o["margin"], reduction=o["reduction"]), [normal(6, 3), normal(6, 3), signs(6)], {**r, "margin": 0.2}, needs=[0, 1])
    for swap in [True, False]:
        for p in [1, 2, 3]:
            add("tripletMarginLoss", lambda a, b, c, o, t: F.triplet_margin_loss(a, b, c, margin=o["margin"], p=o["p"], swap=o["swap"], reduction=o["reduction"]), [normal(5, 3), normal(5, 3), normal(5, 3)], {**r, "margin": 1.5, "p": p, "swap": swap})
add("klDiv", lambda x, y, o, t: F.kl_div(x, y, reduction="batchmean"), [normal(3, 4).log_softmax(-1), normal(3, 4).softmax(-1)], {"reduction": "batchMean"})

# Distances.
add("cosineSimilarity", lambda a, b, o, t: F.cosine_similarity(a, b), [normal(3, 4), normal(3, 4)])
add("cosineSimilarity", lambda a, b, o, t: F.cosine_similarity(a, b, dim=o["axis"], eps=o["eps"]), [normal(3, 4, 2), normal(3, 4, 2)], {"axis": 0, "eps": 2.0})
add("cosineSimilarity", lambda a, b, o, t: F.cosine_similarity(a, b, dim=o["axis"]), [normal(3, 1, 4), normal(5, 4)], {"axis": -1})
same = normal(4, 3)
for p in [1, 2, 3]:
    add("cdist", lambda a, b, o, t: torch.cdist(a, b, p=o["p"]), [normal(2, 4, 3), normal(2, 5, 3)], {"p": p})
    add("dist", lambda a, b, o, t: torch.dist(a, b, p=o["p"]), [normal(4, 3), normal(4, 3)], {"p": p})
add("cdist", lambda a, b, o, t: torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist"), [same, same], {})
add("dist", lambda a, b, o, t: torch.dist(a, b), [same, same], {})

for p in [1, 2, 3]:
    add("pdist", lambda x, o, t: torch.pdist(x, p=o["p"]), [normal(5, 3)], {"p": p})
add("renorm", lambda x, o, t: torch.renorm(x, o["p"], o["axis"], o["maxNorm"]), [normal(4, 3)], {"p": 2, "axis": 0, "maxNorm": 1.5})
add("renorm", lambda x, o, t: torch.renorm(x, o["p"], o["axis"], o["maxNorm"]), [normal(2, 4, 3)], {"p": 1, "axis": -2, "maxNorm": 5.0})

print(json.dumps({"torch": torch.__version__, "cases": cases}, separators=(",", ":")))

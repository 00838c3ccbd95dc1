"""Writes schedules.json: the rates of torch's schedulers, step by step, and of BERT's and apex's formulas as published.

Run: python3 schedules.py > schedules.json   (made with torch 2.13.0)
"""

import json
import math
import warnings

import torch
from torch.optim import lr_scheduler as S

warnings.simplefilter("ignore")


def rates(make, steps, lr):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler = make(optimizer)
    result = []
    for _ in range(steps):
        result.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return result


def plateau(metrics, lr, **options):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler = S.ReduceLROnPlateau(optimizer, **options)
    result = []
    for metric in metrics:
        scheduler.step(metric)
        result.append(optimizer.param_groups[0]["lr"])
    return result


def bert(kind, total, warmup, cycles=0.5):
    # pytorch-pretrained-bert 0.6.2, optimization.py: WarmupLinearSchedule, WarmupConstantSchedule, WarmupCosineSchedule.
    def rate(step):
        progress = step / total
        if progress < warmup:
            return progress / warmup
        if kind == "linear":
            return max((progress - 1.0) / (warmup - 1.0), 0.0)
        if kind == "constant":
            return 1.0
        progress = (progress - warmup) / (1 - warmup)
        return 0.5 * (1.0 + math.cos(math.pi * cycles * 2 * progress))

    return [rate(step) for step in range(total + 1)]


def imagenet(lr, epochs, length):
    # apex, examples/imagenet/main_amp.py: adjust_learning_rate.
    result = []
    for epoch in range(epochs):
        for step in range(length):
            factor = epoch // 30
            if epoch >= 80:
                factor = factor + 1
            value = lr * (0.1**factor)
            if epoch < 5:
                value = value * float(1 + step + epoch * length) / (5.0 * length)
            result.append(value)
    return result


bumpy = [1.0, 0.9, 0.9, 0.89, 0.9, 0.95, 0.8, 0.81, 0.8, 0.82, 0.8, 0.8, 0.8, 0.7999, 0.5, 0.6, 0.6, 0.6, 0.6, float("inf")]

print(
    json.dumps(
        {
            "linear": rates(lambda o: S.LinearLR(o, 0.5, 0.125, 7), 12, 0.3),
            "step": rates(lambda o: S.StepLR(o, 3, 0.5), 12, 0.3),
            "multiStep": rates(lambda o: S.MultiStepLR(o, [2, 5, 9], 0.1), 12, 0.3),
            "exponential": rates(lambda o: S.ExponentialLR(o, 0.9), 12, 0.3),
            "polynomial": rates(lambda o: S.PolynomialLR(o, 8, 2.0), 12, 0.3),
            "cosine": rates(lambda o: S.CosineAnnealingLR(o, 10, 0.01), 11, 0.3),
            "cosineRestarts": rates(lambda o: S.CosineAnnealingWarmRestarts(o, 3, 2, 0.01), 25, 0.3),
            "cosineRestartsEqual": rates(lambda o: S.CosineAnnealingWarmRestarts(o, 4), 13, 0.3),
            "triangular": rates(lambda o: S.CyclicLR(o, 0.1, 0.9, 3, 2, cycle_momentum=False), 20, 0.3),
            "triangular2": rates(lambda o: S.CyclicLR(o, 0.1, 0.9, 2, mode="triangular2", cycle_momentum=False), 20, 0.3),
            "expRange": rates(lambda o: S.CyclicLR(o, 0.1, 0.9, 2, 4, mode="exp_range", gamma=0.9, cycle_momentum=False), 20, 0.3),
            "sequential": rates(
                lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.25, 1.0, 4), S.ExponentialLR(o, 0.8)], [4]), 12, 0.3
            ),
            "chained": rates(
                lambda o: S.ChainedScheduler([S.LinearLR(o, 0.25, 1.0, 4), S.ExponentialLR(o, 0.8)]), 12, 0.3
            ),
            "bumpy": [metric if math.isfinite(metric) else "inf" for metric in bumpy],
            "plateauMin": plateau(bumpy, 1.0, patience=1, factor=0.5, threshold=0.05, cooldown=1),
            "plateauMax": plateau(bumpy, 1.0, mode="max", patience=2, factor=0.1, threshold_mode="abs", min_lr=1e-3),
            "warmupLinear": bert("linear", 20, 0.25),
            "warmupConstant": bert("constant", 20, 0.25),
            "warmupCosine": bert("cosine", 20, 0.25),
            "imagenet": imagenet(0.4, 90, 2),
        }
    )
)

"""Gradients beside golden values, by torch: the recipes import it."""

import math

import torch


def gradients_of(result, inputs):
    """Of the result weighted from 0.5 to 1.5 by its elements in order; none where nothing flows."""
    if not result.requires_grad:
        return None
    weights = torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape)
    found = torch.autograd.grad(result, inputs, weights, allow_unused=True)
    return [None if g is None else [round(v, 9) if math.isfinite(v) else str(v) for v in g.flatten().tolist()] for g in found]

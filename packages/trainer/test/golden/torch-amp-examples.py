"""Writes torch-amp-examples.json: the examples of torch's notes/amp_examples, in float32 and under autocast in bfloat16.

Made with torch 1.13.1 on a CPU, where autocast knows bfloat16 only and GradScaler is disabled: its methods are transcribed from
torch/cuda/amp/grad_scaler.py below, and so are custom_fwd and custom_bwd. Run: python torch-amp-examples.py
Numbers are multiples of 1/16, made by a formula that torch-amp-examples.test.ts has, too.
"""
import json
import pathlib

import numpy as np
import torch

sizes = dict(w1=(4, 8), b1=(8,), w2=(8, 2), b2=(2,))


def numbers(shape, seed):
    count = int(np.prod(shape))
    return torch.tensor([((i * 7 + seed * 5) % 11 - 5) / 16 for i in range(count)], dtype=torch.float32).reshape(shape)


class Net:
    def __init__(self, seed):
        for place, (name, shape) in enumerate(sizes.items()):
            setattr(self, name, numbers(shape, seed + place).requires_grad_())

    def parameters(self):
        return [getattr(self, name) for name in sizes]

    def __call__(self, x):
        return torch.tanh(x.mm(self.w1) + self.b1).mm(self.w2) + self.b2


class Scaler:
    """GradScaler(growth_interval=2)"""

    def __init__(self):
        self.current, self.tracker, self.found = 2.0**16, 0, {}

    def scale(self, loss):
        return loss * torch.tensor(self.current, dtype=torch.float32)

    def get_scale(self):
        return self.current

    def unscale_(self, optimizer):
        inverse = torch.tensor(1 / self.current, dtype=torch.float32)
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        self.found[optimizer] = any(not torch.isfinite(g).all() for g in grads)
        for g in grads:
            g.mul_(inverse)

    def step(self, optimizer):
        if optimizer not in self.found:
            self.unscale_(optimizer)
        if not self.found[optimizer]:
            optimizer.step()

    def update(self):
        if any(self.found.values()):
            self.current, self.tracker = self.current * 0.5, 0
        else:
            self.tracker += 1
            if self.tracker == 2:
                self.current, self.tracker = self.current * 2.0, 0
        self.found = {}


def loss_fn(output, target):
    return (output - target).square().mean()


def batch(step):
    """In step 3 the loss overflows."""
    return numbers((6, 4), 20 + step) * 4, numbers((6, 2), 50 + step) * (1e38 if step == 3 else 4)


def sgd(model, lr=0.125):
    return torch.optim.SGD(model.parameters(), lr=lr)


def typical(autocast, scaler, note):
    model = Net(1)
    optimizer = sgd(model)
    for step in range(8):
        x, y = batch(step)
        optimizer.zero_grad()
        with autocast():
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        note(loss)
    return [model]


def clipping(autocast, scaler, note):
    model = Net(2)
    optimizer = sgd(model)
    for step in range(8):
        x, y = batch(step)
        optimizer.zero_grad()
        with autocast():
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        scaler.step(optimizer)
        scaler.update()
        note(loss)
    return [model]


def accumulation(autocast, scaler, note):
    model = Net(3)
    optimizer = sgd(model)
    for step in range(12):
        x, y = batch(step)
        with autocast():
            loss = loss_fn(model(x), y) / 2
        scaler.scale(loss).backward()
        if (step + 1) % 2 == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        note(loss)
    return [model]


def penalty(autocast, scaler, note):
    model = Net(4)
    optimizer = sgd(model)
    for step in range(8):
        x, y = batch(step)
        optimizer.zero_grad()
        with autocast():
            loss = loss_fn(model(x), y)
        scaled = torch.autograd.grad(outputs=scaler.scale(loss), inputs=model.parameters(), create_graph=True)
        inv_scale = 1.0 / scaler.get_scale()
        grads = [p * inv_scale for p in scaled]
        with autocast():
            norm = 0
            for grad in grads:
                norm += grad.pow(2).sum()
            loss = loss + norm.sqrt()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        note(loss)
    return [model]


def several(autocast, scaler, note):
    models = [Net(5), Net(6)]
    optimizers = [sgd(model, 0.0078125) for model in models]
    for step in range(8):
        x, y = batch(step)
        for optimizer in optimizers:
            optimizer.zero_grad()
        with autocast():
            output0, output1 = [model(x) for model in models]
            loss0 = loss_fn(2 * output0 + 3 * output1, y)
            loss1 = loss_fn(3 * output0 - 5 * output1, y)
        scaler.scale(loss0).backward(retain_graph=True)
        scaler.scale(loss1).backward()
        scaler.unscale_(optimizers[0])
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()
        note(loss0)
    return models


def functions(autocast, scaler, note):
    class MyMM(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a.mm(b)

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            with autocast():
                return grad.mm(b.t()), a.t().mm(grad)

    class MyFloat32Func(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.mm(x.t())

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return (grad + grad.t()).mm(x)

    def float32(x):
        with torch.autocast("cpu", enabled=False):
            return MyFloat32Func.apply(x.float())

    model = Net(7)
    optimizer = sgd(model)
    for step in range(8):
        x, y = batch(step)
        optimizer.zero_grad()
        with autocast():
            hidden = torch.tanh(MyMM.apply(x, model.w1) + model.b1)
            output = MyMM.apply(hidden, model.w2) + model.b2
            loss = loss_fn(output, y) + float32(output).mean() / 16
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        note(loss)
    return [model]


out = {}
for example in [typical, clipping, accumulation, penalty, several, functions]:
    for precision in ["float32", "bfloat16"]:

        def autocast():
            return torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16")

        scaler, losses, scales = Scaler(), [], []

        def note(loss):
            losses.append(loss.item() if torch.isfinite(loss) else None)
            scales.append(scaler.get_scale())

        models = example(autocast, scaler, note)
        weights = [v for model in models for p in model.parameters() for v in p.detach().flatten().tolist()]
        out[f"{example.__name__} {precision}"] = dict(losses=losses, scales=scales, weights=weights)
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(out, indent=1) + "\n")

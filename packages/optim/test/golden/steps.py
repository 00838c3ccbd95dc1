"""Parameters after three steps of every optimizer, and after twenty of some, as torch and apex compute them, in steps.json.

Each case names the torch (CPU) that made it. Optimizers that torch has are torch's own, in float64 so that nothing but the arithmetic of the
library under test is measured; Muon's iteration is bfloat16 in torch, so it is patched to float64. LAMB, NovoGrad, LARC and the classes
whose names begin with Fused are apex's formulas (csrc/multi_tensor_*.cu, apex/parallel/LARC.py), BertAdam is that of
pytorch-pretrained-BERT 0.6.2 (optimization.py), Lion algorithm 2 of arXiv 2302.06675, all restated here on tensors.

Twenty steps are for rules whose state decides what a step does: averages that begin within the run, and step sizes by signs. With
`planted`, gradients keep their signs for three or four steps, are 0 in places that move, and in some places for three steps.

Run: python steps.py > steps.json, and biome formats it. With names of optimizers, as in `python steps.py ASGD Rprop`, only
their cases are computed, and the others are taken from the file: a release of torch may lack some. Write to another file first.
"""

import json
import math
import pathlib
import sys
from functools import partial

import torch

torch.set_default_dtype(torch.float64)


def numbers(count, a, b):
    """Exact in float32: multiples of 2^-10."""
    return [round(math.sin(a * i + b) * 700) / 1024 for i in range(count)]


SHAPES = {"matrix": [3, 4], "stack": [2, 3, 2], "vector": [5]}
MATRICES = {"wide": [3, 5], "tall": [6, 2]}


def tensors(shapes, a, b):
    return [
        torch.tensor(numbers(math.prod(shape), a, b + i)).reshape(shape)
        for i, shape in enumerate(shapes.values())
    ]


def gradients(shapes, step, planted):
    found = tensors(shapes, 1.3, (0.9 if planted else 10) * step)
    if planted:
        for gradient in found:
            flat = gradient.view(-1)
            for i in range(len(flat)):
                if (i + step) % 5 == 0 or (i % 3 == 0 and 8 <= step < 11):
                    flat[i] = 0
    return found


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = (b1 * m + (1 - b1) * p.grad).sign()
                p -= group["lr"] * (update + group["weight_decay"] * p)
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


class FusedSGD(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, wd_after_momentum=False):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay))
        self.momentum, self.dampening, self.nesterov, self.after = momentum, dampening, nesterov, wd_after_momentum

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            decay = group["weight_decay"]
            for p in group["params"]:
                state = self.state[p]
                g = p.grad if self.after else p.grad + decay * p
                if self.momentum != 0:
                    if "m" in state:
                        state["m"].mul_(self.momentum).add_(g, alpha=1 - self.dampening)
                    else:
                        state["m"] = g.clone()
                    g = g + self.momentum * state["m"] if self.nesterov else state["m"]
                if self.after:
                    g = g + decay * p
                p -= group["lr"] * g


class FusedAdam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, bias_correction=True, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, adam_w_mode=True):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self.corrects, self.decoupled, self.t = bias_correction, adam_w_mode, 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        for group in self.param_groups:
            (b1, b2), decay = group["betas"], group["weight_decay"]
            c1, c2 = (1 - b1**self.t, 1 - b2**self.t) if self.corrects else (1.0, 1.0)
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                g = p.grad if self.decoupled else p.grad + decay * p
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                update = (m / c1) / ((v / c2).sqrt() + group["eps"])
                p -= group["lr"] * (update + decay * p if self.decoupled else update)


class FusedAdagrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, eps=1e-10, weight_decay=0.0, adagrad_w_mode=False):
        super().__init__(params, dict(lr=lr, eps=eps, weight_decay=weight_decay))
        self.decoupled = adagrad_w_mode

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            decay = group["weight_decay"]
            for p in group["params"]:
                h = self.state[p].setdefault("h", torch.zeros_like(p))
                g = p.grad if self.decoupled else p.grad + decay * p
                h.addcmul_(g, g)
                update = g / (h.sqrt() + group["eps"])
                p -= group["lr"] * (update + decay * p if self.decoupled else update)


class LAMB(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01, max_grad_norm=1.0,
                 bias_correction=True, adam_w_mode=True, grad_averaging=True, use_nvlamb=False):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self.max_grad_norm, self.bias_correction = max_grad_norm, bias_correction
        self.adam_w_mode, self.grad_averaging, self.use_nvlamb = adam_w_mode, grad_averaging, use_nvlamb
        self.t = 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        all_grads = torch.cat([p.grad.flatten() for g in self.param_groups for p in g["params"]])
        norm = all_grads.norm()
        clip = norm / self.max_grad_norm if norm > self.max_grad_norm else 1.0
        for group in self.param_groups:
            b1, b2 = group["betas"]
            decay = group["weight_decay"]
            b3 = 1 - b1 if self.grad_averaging else 1.0
            c1 = 1 - b1**self.t if self.bias_correction else 1.0
            c2 = 1 - b2**self.t if self.bias_correction else 1.0
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                g = p.grad / clip
                if not self.adam_w_mode:
                    g = g + decay * p
                m.mul_(b1).add_(g, alpha=b3)
                v.mul_(b2).add_((1 - b2) * g * g)
                update = (m / c1) / ((v / c2).sqrt() + group["eps"])
                if self.adam_w_mode:
                    update = update + decay * p
                ratio = group["lr"]
                if self.use_nvlamb or decay != 0:
                    p_norm, u_norm = p.norm(), update.norm()
                    if p_norm != 0 and u_norm != 0:
                        ratio = group["lr"] * (p_norm / u_norm)
                p -= ratio * update


class NovoGrad(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, bias_correction=True, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
                 reg_inside_moment=False, grad_averaging=True, norm_type=2, init_zero=False):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self.bias_correction, self.inside, self.averaging = bias_correction, reg_inside_moment, grad_averaging
        self.norm_type, self.init_zero, self.t = norm_type, init_zero, 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        for group in self.param_groups:
            b1, b2 = group["betas"]
            b3 = 1 - b1 if self.averaging else 1.0
            c1 = 1 - b1**self.t if self.bias_correction else 1.0
            c2 = math.sqrt(1 - b2**self.t) if self.bias_correction else 1.0
            for p in group["params"]:
                state = self.state[p]
                m = state.setdefault("m", torch.zeros_like(p))
                n = p.grad.abs().max() if self.norm_type == 0 else p.grad.norm()
                if "n" not in state:
                    state["n"] = torch.zeros_like(n) if self.init_zero else n.clone()
                if self.norm_type == 0:
                    state["n"] = b2 * state["n"] + (1 - b2) * n
                else:
                    state["n"] = (b2 * state["n"] ** 2 + (1 - b2) * n**2).sqrt()
                denom = state["n"] / c2 + group["eps"]
                if self.inside:
                    m.mul_(b1).add_(p.grad / denom + group["weight_decay"] * p, alpha=b3)
                    p -= group["lr"] * (m / c1)
                else:
                    m.mul_(b1).add_(p.grad, alpha=b3)
                    p -= group["lr"] * ((m / c1) / denom + group["weight_decay"] * p)


class BertAdam(torch.optim.Optimizer):
    def __init__(self, params, lr, warmup=-1, t_total=-1, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01,
                 max_grad_norm=1.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self.warmup, self.t_total, self.max_grad_norm, self.t = warmup, t_total, max_grad_norm, 0

    @torch.no_grad()
    def step(self):
        progress = self.t / self.t_total
        warmup = max(self.warmup, 0.0)
        rate = 1.0
        if self.t_total > 0:
            rate = progress / warmup if progress < warmup else max((progress - 1) / (warmup - 1), 0.0)
        self.t += 1
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                g = p.grad.clone()
                if self.max_grad_norm > 0:
                    g *= torch.clamp(self.max_grad_norm / (g.norm() + 1e-6), max=1.0)
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                p -= group["lr"] * rate * (m / (v.sqrt() + group["eps"]) + group["weight_decay"] * p)


class LARC:
    def __init__(self, optimizer, trust_coefficient=0.02, clip=True, eps=1e-8):
        self.optimizer, self.trust, self.clip, self.eps = optimizer, trust_coefficient, clip, eps

    @torch.no_grad()
    def step(self):
        decays = []
        for group in self.optimizer.param_groups:
            decay = group["weight_decay"]
            decays.append(decay)
            group["weight_decay"] = 0
            for p in group["params"]:
                p_norm, g_norm = p.norm(), p.grad.norm()
                if p_norm != 0 and g_norm != 0:
                    rate = self.trust * p_norm / (g_norm + p_norm * decay + self.eps)
                    if self.clip:
                        rate = min(rate / group["lr"], 1)
                    p.grad += decay * p
                    p.grad *= rate
        self.optimizer.step()
        for group, decay in zip(self.optimizer.param_groups, decays):
            group["weight_decay"] = decay


def muon(*args, **options):
    torch.Tensor.bfloat16 = torch.Tensor.clone  # torch divides the copy in place
    return torch.optim.Muon(*args, **options)


def torchs(name):
    return lambda params, **options: getattr(torch.optim, name)(params, **options)


CASES = [
    ("SGD", torchs("SGD"), dict(lr=0.1)),
    ("SGD", torchs("SGD"), dict(lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01)),
    ("SGD", torchs("SGD"), dict(lr=0.1, momentum=0.9, nesterov=True, maximize=True)),
    ("SGD", FusedSGD, dict(lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True, wd_after_momentum=True)),
    ("SGD", FusedSGD, dict(lr=0.1, momentum=0.5, dampening=0.25, weight_decay=0.1, wd_after_momentum=True)),
    ("SGD", FusedSGD, dict(lr=0.1, weight_decay=0.1, wd_after_momentum=True)),
    ("Adam", torchs("Adam"), dict()),
    ("Adam", partial(FusedAdam, adam_w_mode=False), dict(lr=0.01, weight_decay=0.1, bias_correction=False)),
    ("Adam", torchs("Adam"), dict(lr=0.01, weight_decay=0.1, amsgrad=True, betas=(0.5, 0.9), eps=1e-3)),
    ("AdamW", torchs("AdamW"), dict()),
    ("AdamW", FusedAdam, dict(lr=0.01, weight_decay=0.1, bias_correction=False)),
    ("AdamW", FusedAdam, dict(lr=0.01, weight_decay=0.1, bias_correction=True)),
    ("AdamW", torchs("AdamW"), dict(lr=0.01, weight_decay=0.1, amsgrad=True, maximize=True)),
    ("Adamax", torchs("Adamax"), dict()),
    ("Adamax", torchs("Adamax"), dict(lr=0.01, weight_decay=0.1, betas=(0.5, 0.9))),
    ("NAdam", torchs("NAdam"), dict()),
    ("NAdam", torchs("NAdam"), dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True, momentum_decay=0.1)),
    ("RAdam", torchs("RAdam"), dict()),
    ("RAdam", torchs("RAdam"), dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True, betas=(0.5, 0.8))),
    ("RMSprop", torchs("RMSprop"), dict()),
    ("RMSprop", torchs("RMSprop"), dict(lr=0.01, centered=True, momentum=0.9, weight_decay=0.1, alpha=0.8)),
    ("Adagrad", torchs("Adagrad"), dict()),
    ("Adagrad", torchs("Adagrad"), dict(lr=0.1, lr_decay=0.5, weight_decay=0.1, initial_accumulator_value=0.25)),
    ("Adagrad", FusedAdagrad, dict(lr=0.1, weight_decay=0.1, adagrad_w_mode=True)),
    ("Adadelta", torchs("Adadelta"), dict()),
    ("Adadelta", torchs("Adadelta"), dict(lr=0.5, rho=0.5, weight_decay=0.1, eps=1e-3)),
    ("ASGD", torchs("ASGD"), dict()),
    ("ASGD", torchs("ASGD"), dict(lr=0.1, lambd=0.5, alpha=0.5, t0=0, weight_decay=0.1)),
    ("ASGD", torchs("ASGD"), dict(lr=0.1, lambd=0.01, t0=5), dict(steps=20, planted=True)),
    ("Rprop", torchs("Rprop"), dict()),
    ("Rprop", torchs("Rprop"), dict(lr=0.1, etas=(0.25, 1.5), step_sizes=(0.03, 0.12), maximize=True)),
    ("Rprop", torchs("Rprop"), dict(), dict(steps=20, planted=True)),
    ("Rprop", torchs("Rprop"), dict(lr=0.05, step_sizes=(0.02, 0.1)), dict(steps=20, planted=True)),
    ("Adafactor", torchs("Adafactor"), dict(eps=(2**-23, 1e-3))),
    ("Adafactor", torchs("Adafactor"), dict(lr=0.9, weight_decay=0.1, d=1.5, beta2_decay=-0.5, eps=(0.25, 0.5))),
    ("Muon", muon, dict()),
    ("Muon", muon, dict(lr=0.1, weight_decay=0.5, momentum=0.5, nesterov=False, adjust_lr_fn="match_rms_adamw")),
    ("Lion", Lion, dict()),
    ("Lion", Lion, dict(lr=0.01, weight_decay=0.5, betas=(0.5, 0.9))),
    ("LAMB", LAMB, dict()),
    ("LAMB", LAMB, dict(lr=0.1, weight_decay=0.0, use_nvlamb=True, max_grad_norm=0.5, bias_correction=False)),
    ("LAMB", LAMB, dict(lr=0.1, adam_w_mode=False, grad_averaging=False)),
    ("NovoGrad", NovoGrad, dict()),
    ("NovoGrad", NovoGrad, dict(lr=0.1, weight_decay=0.1, reg_inside_moment=True, init_zero=True)),
    ("NovoGrad", NovoGrad, dict(lr=0.1, norm_type=0, grad_averaging=False, bias_correction=False)),
    ("BertAdam", BertAdam, dict(lr=0.01)),
    ("BertAdam", BertAdam, dict(lr=0.1, warmup=0.5, t_total=4, max_grad_norm=0.5)),
    ("LARC SGD", lambda p, **o: LARC(torchs("SGD")(p, **o)), dict(lr=0.1, momentum=0.9, weight_decay=0.1)),
    ("LARC SGD", lambda p, **o: LARC(torchs("SGD")(p, **o), 0.5, False), dict(lr=0.1, weight_decay=0.1)),
]


def camel(name):
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


# Other states than moments, by torch's names.
STATES = {"ASGD": "ax", "Rprop": "step_size"}
wanted = sys.argv[1:]
file = pathlib.Path(__file__).with_suffix(".json")
known = json.loads(file.read_text())["cases"] if wanted else []
cases = [case for case in known if case["optimizer"] not in wanted]
for name, make, options, *run in CASES:
    if wanted and name not in wanted:
        continue
    shapes = MATRICES if name == "Muon" else SHAPES
    params = [t.requires_grad_() for t in tensors(shapes, 0.7, 1)]
    optimizer = make(params, **options)
    run = {"steps": 3, "planted": False, **(run[0] if run else {})}
    for step in range(run["steps"]):
        for p, g in zip(params, gradients(shapes, step, run["planted"])):
            p.grad = g
        optimizer.step()
    state = STATES.get(name)
    cases.append({
        "torch": torch.__version__,
        "optimizer": name,
        "options": {camel(key): value for key, value in options.items()},
        **(run if run["planted"] else {}),
        **({"larc": {"trustCoefficient": optimizer.trust, "clip": optimizer.clip}} if "LARC" in name else {}),
        "shapes": shapes,
        "values": [round(v, 10) for p in params for v in p.detach().flatten().tolist()],
        **({"state": {camel(state): [round(v, 10) for p in params for v in optimizer.state[p][state].flatten().tolist()]}} if state else {}),
    })
print('{\n"cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]\n}")

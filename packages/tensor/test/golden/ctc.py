"""The connectionist temporal classification loss in float64, by torch 1.13.1: `python ctc.py > ctc.json`."""

import json

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(5)
length, batch, classes = 6, 4, 5
logits = (torch.round(torch.randn(length, batch, classes) * 32) / 32).requires_grad_()
targets = torch.tensor([[1, 2, 2], [4, 3, 0], [3, 3, 3], [0, 0, 0]])
inputs, lengths = torch.tensor([6, 4, 3, 5]), torch.tensor([3, 2, 3, 0])
# The third cannot be aligned: three equal labels take five steps.
loss = lambda **options: F.ctc_loss(logits.log_softmax(2), targets, inputs, lengths, **options)
values = {reduction: loss(reduction=reduction, zero_infinity=True).tolist() for reduction in ["none", "sum", "mean"]}
loss(zero_infinity=True).backward()
last = F.ctc_loss(logits.log_softmax(2), torch.tensor([[1, 0], [2, 1], [3, 2], [0, 3]]), inputs, torch.tensor([2, 2, 1, 2]), blank=4)
print(json.dumps({
    "logits": logits.flatten().tolist(),
    **values,
    "infinite": str(loss(reduction="none")[2].item()),
    "gradient": logits.grad.flatten().tolist(),
    "blank 4": last.item(),
}))

"""PyTorch as a lane of the benchmark: requests as JSON lines on stdin, answers as JSON lines on stdout.

The models are those of @halfstep/models, with their names of parameters, as plain functions of a state dict; training is that
of torch's AMP examples: autocast, a GradScaler where the precision is float16, and Adam.
"""

import contextlib
import json
import struct
import sys
import time

import torch
import torch.nn.functional as F

dtypes = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    kinds = {"F32": torch.float32, "U32": torch.int32}
    tensors = {}
    for name, about in header.items():
        begin, end = about["data_offsets"]
        values = torch.frombuffer(data, dtype=kinds[about["dtype"]], offset=begin, count=(end - begin) // 4)
        tensors[name] = values.reshape(about["shape"]).clone().to(device)
    return tensors


def synchronize():
    if device.type == "cuda":
        torch.cuda.synchronize()


def linear(p, name, x):
    return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def layer_norm(p, name, x, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"], eps)


def batch_norm(p, name, x):
    statistics = p[f"{name}.running_mean"], p[f"{name}.running_var"]
    return F.batch_norm(x, *statistics, p[f"{name}.weight"], p[f"{name}.bias"], training=True)


def attention(query, key, value, heads, is_causal):
    """All three [batch, length, size]."""
    batch, length, size = query.shape
    split = [t.view(batch, length, heads, size // heads).transpose(1, 2) for t in (query, key, value)]
    joined = F.scaled_dot_product_attention(*split, is_causal=is_causal)
    return joined.transpose(1, 2).reshape(batch, length, size)


def mlp(p, x, options):
    count = sum(name.endswith(".weight") for name in p)
    for i in range(count):
        x = linear(p, f"layers.{i}", x)
        if i < count - 1:
            x = F.relu(x)
    return x


def digits_cnn(p, x, options):
    x = x.permute(0, 3, 1, 2)
    for i in (1, 2, 3):
        x = F.conv2d(x, p[f"conv{i}.weight"], padding=1)
        x = F.relu(F.max_pool2d(batch_norm(p, f"bn{i}", x), 2))
    # Features are by row, column, channel.
    return linear(p, "fc", x.permute(0, 2, 3, 1).flatten(1))


def resnet(p, x, options):
    """Basic blocks behind the stem for small images."""
    x = x.permute(0, 3, 1, 2)
    x = F.relu(batch_norm(p, "bn1", F.conv2d(x, p["conv1.weight"], padding=1)))
    for stage in (1, 2, 3):
        block = 0
        while f"layer{stage}.{block}.conv1.weight" in p:
            name = f"layer{stage}.{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            y = F.conv2d(x, p[f"{name}.conv1.weight"], stride=stride, padding=1)
            y = F.relu(batch_norm(p, f"{name}.bn1", y))
            y = batch_norm(p, f"{name}.bn2", F.conv2d(y, p[f"{name}.conv2.weight"], padding=1))
            if f"{name}.downsample.0.weight" in p:
                shortcut = F.conv2d(x, p[f"{name}.downsample.0.weight"], stride=stride)
                x = batch_norm(p, f"{name}.downsample.1", shortcut)
            x = F.relu(y + x)
            block += 1
    return linear(p, "fc", x.mean((2, 3)))


def gpt(p, tokens, options):
    def conv1d(name, x):
        # GPT-2 keeps these weights as [in, out].
        return x @ p[f"{name}.weight"] + p[f"{name}.bias"]

    x = F.embedding(tokens, p["transformer.wte.weight"]) + p["transformer.wpe.weight"][: tokens.shape[1]]
    for i in range(options["layers"]):
        name = f"transformer.h.{i}"
        q, k, v = conv1d(f"{name}.attn.c_attn", layer_norm(p, f"{name}.ln_1", x)).chunk(3, dim=-1)
        x = x + conv1d(f"{name}.attn.c_proj", attention(q, k, v, options["heads"], True))
        hidden = conv1d(f"{name}.mlp.c_fc", layer_norm(p, f"{name}.ln_2", x))
        x = x + conv1d(f"{name}.mlp.c_proj", F.gelu(hidden, approximate="tanh"))
    logits = F.linear(layer_norm(p, "transformer.ln_f", x), p["transformer.wte.weight"])
    return logits.flatten(0, 1)


def bert(p, tokens, options):
    eps = 1e-12
    at = "bert.embeddings"
    words = F.embedding(tokens, p[f"{at}.word_embeddings.weight"])
    positions = p[f"{at}.position_embeddings.weight"][: tokens.shape[1]]
    x = layer_norm(p, f"{at}.LayerNorm", words + p[f"{at}.token_type_embeddings.weight"][0] + positions, eps)
    for i in range(options["layers"]):
        at = f"bert.encoder.layer.{i}"
        q, k, v = (linear(p, f"{at}.attention.self.{part}", x) for part in ("query", "key", "value"))
        y = linear(p, f"{at}.attention.output.dense", attention(q, k, v, options["heads"], False))
        x = layer_norm(p, f"{at}.attention.output.LayerNorm", y + x, eps)
        y = linear(p, f"{at}.output.dense", F.gelu(linear(p, f"{at}.intermediate.dense", x)))
        x = layer_norm(p, f"{at}.output.LayerNorm", y + x, eps)
    at = "cls.predictions"
    x = layer_norm(p, f"{at}.transform.LayerNorm", F.gelu(linear(p, f"{at}.transform.dense", x)), eps)
    return F.linear(x, p["bert.embeddings.word_embeddings.weight"], p[f"{at}.bias"]).flatten(0, 1)


models = {"mlp": mlp, "digits": digits_cnn, "resnet": resnet, "gpt": gpt, "bert": bert}


class Training:
    """Steps of AMP training on one batch."""

    def __init__(self, tensors, request):
        self.dtype = dtypes[request["precision"]]
        self.forward = models[request["model"]]
        self.options = request["options"]
        self.input = tensors.pop("input")
        self.labels = tensors.pop("labels").long()
        self.state = {name: value for name, value in tensors.items() if not is_tied(name)}
        for name, value in self.state.items():
            if value.dim() == 4:
                self.state[name] = value = value.to(memory_format=torch.channels_last)
            value.requires_grad_("running_" not in name)
        trained = [value for value in self.state.values() if value.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=request["lr"], fused=device.type == "cuda")
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.dtype == torch.float16)

    def step(self):
        region = (
            contextlib.nullcontext()
            if self.dtype == torch.float32
            else torch.autocast(device.type, dtype=self.dtype)
        )
        with region:
            loss = F.cross_entropy(self.forward(self.state, self.input, self.options), self.labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return loss.detach()

    def result(self, steps):
        return torch.stack([self.step() for _ in range(steps)])


def is_tied(name):
    """Second names of what is there under another one."""
    return name == "lm_head.weight" or name.startswith("cls.predictions.decoder.")


class Product:
    """C = A·B in the precision's dtype."""

    def __init__(self, tensors, request):
        dtype = dtypes[request["precision"]]
        self.a, self.b = (tensors[name].to(dtype) for name in ("a", "b"))

    def step(self):
        return self.a @ self.b

    def result(self, steps):
        return self.step()


class Lane:
    def __init__(self):
        self.tasks = []

    def prepare(self, request):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        kind = {"training": Training, "product": Product}[request["kind"]]
        self.tasks.append(kind(read_safetensors(request["tensors"]), request))
        return {"task": len(self.tasks) - 1}

    def run(self, request):
        task = self.tasks[request["task"]]
        started = time.perf_counter()
        for _ in range(request["count"]):
            task.step()
        host = time.perf_counter() - started
        synchronize()
        peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
        return {"hostSeconds": host, "peakBytes": peak}

    def result(self, request):
        values = self.tasks[request["task"]].result(request["steps"])
        with open(request["file"], "wb") as file:
            file.write(values.float().cpu().contiguous().numpy().tobytes())
        return {}


def main():
    torch.backends.cudnn.benchmark = True
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(json.dumps({"version": f"{torch.__version__} on {name}"}), flush=True)
    lane = Lane()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(lane, request["do"])(request)
        except Exception as error:  # The lane goes on with what it can do.
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


main()

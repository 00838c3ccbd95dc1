"""A tiny GPT-2 in the folder `gpt2`, as it was published before there was tokenizer.json: vocab.json, merges.txt, pytorch_model.bin.

Its checkpoint has two sets of weights, as trainers with an average save them: `model`, and `ema` with `weights`. The average lacks nothing and
differs in every number. Made with torch 1.13.0 (Debian 12: python3-torch 1.13.1+dfsg-4, CPU) and Python 3.11:

    python3 gpt2.py
"""

import json
import pathlib

import torch

directory = pathlib.Path(__file__).parent / "gpt2"
directory.mkdir(exist_ok=True)
WIDTH, CONTEXT, LAYERS = 8, 16, 1

# The symbols of bytes: openai/gpt-2, src/encoder.py, bytes_to_unicode().
printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
others = [byte for byte in range(256) if byte not in printable]
symbols = [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]
merges = ["t h", "th e", "Ġ the", "a t"]
tokens = symbols + [pair.replace(" ", "") for pair in merges] + ["<|endoftext|>"]


def state(seed):
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape):
        return torch.randn(*shape, generator=generator) * 0.3

    weights = {"wte.weight": drawn(len(tokens), WIDTH), "wpe.weight": drawn(CONTEXT, WIDTH)}
    for i in range(LAYERS):
        for name, rows, columns in [
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, 4 * WIDTH),
            ("mlp.c_proj", 4 * WIDTH, WIDTH),
        ]:
            weights[f"h.{i}.{name}.weight"] = drawn(rows, columns)
            weights[f"h.{i}.{name}.bias"] = drawn(columns)
        for name in ["ln_1", "ln_2"]:
            weights[f"h.{i}.{name}.weight"] = 1 + drawn(WIDTH)
            weights[f"h.{i}.{name}.bias"] = drawn(WIDTH)
    weights["ln_f.weight"] = 1 + drawn(WIDTH)
    weights["ln_f.bias"] = drawn(WIDTH)
    return {f"transformer.{name}": value for name, value in weights.items()}


config = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "activation_function": "gelu_new",
    "vocab_size": len(tokens),
    "n_positions": CONTEXT,
    "n_embd": WIDTH,
    "n_layer": LAYERS,
    "n_head": 2,
    "layer_norm_epsilon": 1e-5,
}
(directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
vocab = {token: i for i, token in enumerate(tokens)}
(directory / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False) + "\n")
(directory / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n")
checkpoint = {"step": 3, "model": state(0), "ema": {"decay": 0.999, "weights": state(1)}}
torch.save(checkpoint, directory / "pytorch_model.bin")

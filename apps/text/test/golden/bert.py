"""A tiny BERT that classifies, in the folder `bert`, as transformers has it.

Its checkpoint has two sets of weights, as trainers with an average save them: `model`, and `ema` with `weights`, which differ in every number. Made
with torch 1.13.0 (Debian 12: python3-torch 1.13.1+dfsg-4, CPU) and Python 3.11:

    python3 bert.py
"""

import json
import pathlib

import torch

directory = pathlib.Path(__file__).parent / "bert"
directory.mkdir(exist_ok=True)
WIDTH, INNER, LABELS = 8, 16, ["NEGATIVE", "POSITIVE"]
tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "bad", "film", "fine", "good", "is", "the", "this"]


def state(seed):
    generator = torch.Generator().manual_seed(seed)
    weights = {}

    def drawn(*shape):
        return torch.randn(*shape, generator=generator) * 0.5

    def linear(name, inputs, outputs):
        weights[f"{name}.weight"] = drawn(outputs, inputs)
        weights[f"{name}.bias"] = drawn(outputs)

    def norm(name):
        weights[f"{name}.weight"] = 1 + drawn(WIDTH)
        weights[f"{name}.bias"] = drawn(WIDTH)

    for name, rows in [("word", len(tokens)), ("position", 16), ("token_type", 2)]:
        weights[f"bert.embeddings.{name}_embeddings.weight"] = drawn(rows, WIDTH)
    norm("bert.embeddings.LayerNorm")
    layer = "bert.encoder.layer.0"
    for name in ["query", "key", "value"]:
        linear(f"{layer}.attention.self.{name}", WIDTH, WIDTH)
    linear(f"{layer}.attention.output.dense", WIDTH, WIDTH)
    norm(f"{layer}.attention.output.LayerNorm")
    linear(f"{layer}.intermediate.dense", WIDTH, INNER)
    linear(f"{layer}.output.dense", INNER, WIDTH)
    norm(f"{layer}.output.LayerNorm")
    linear("bert.pooler.dense", WIDTH, WIDTH)
    linear("classifier", WIDTH, len(LABELS))
    return weights


config = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "id2label": dict(enumerate(LABELS)),
    "label2id": {label: i for i, label in enumerate(LABELS)},
    "vocab_size": len(tokens),
    "hidden_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": INNER,
    "hidden_act": "gelu",
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
}
(directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
(directory / "vocab.txt").write_text("\n".join(tokens) + "\n")
checkpoint = {"step": 3, "model": state(0), "ema": {"decay": 0.999, "weights": state(1)}}
torch.save(checkpoint, directory / "pytorch_model.bin")

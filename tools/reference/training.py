"""Ten steps of training, as handgrad's trainer does them: its windows of a text, accumulation, clipping, schedule."""

import json

import torch
import torch.nn.functional as F

from common import group_in, put, save
from optimizers import schedule
from random_numbers import window_start

STEPS = 10
VALIDATION_FRACTION = 0.1


def text_of(variant):
    """Tokens of a text with every token in it, so that its vocabulary is the model's; 13 windows of it to train on."""
    windows = 13
    train_tokens = windows * variant["model"]["context"] + 2
    length = max(int(train_tokens / (1 - VALIDATION_FRACTION)) + 1, train_tokens + variant["model"]["context"] + 1)
    text = torch.randint(variant["vocabulary"], (length,))
    text[: variant["vocabulary"]] = torch.arange(variant["vocabulary"])
    return text


def batch_of(variant, tokens, first):
    context, train = variant["model"]["context"], variant["train"]
    starts = [window_start(first + i, len(tokens), context, variant["data"]["order"], train["seed"])
              for i in range(train["batch_size"])]
    return (torch.stack([tokens[s: s + context] for s in starts]),
            torch.stack([tokens[s + 1: s + context + 1] for s in starts]))


def rates_of(variant):
    optimizer, kind = variant["optimizer"], variant["schedule"]
    return schedule(kind["kind"], optimizer["lr"], optimizer["min_lr"], kind["warmup_steps"], STEPS,
                    kind.get("decay_steps", 0))


def train(model, variant):
    """Trains in place. Loss, rate and norm of each step; the text."""
    text = text_of(variant)
    tokens = text[: int(len(text) * (1 - VALIDATION_FRACTION) + 1e-6)]
    options, train_options = variant["optimizer"], variant["train"]
    parameters = list(model.parameters.values())
    # Decay is for tensors of two or more axes.
    decays = [p for p in parameters if p.dim() >= 2]
    others = [p for p in parameters if p.dim() < 2]
    optimizer = torch.optim.AdamW([dict(params=decays, weight_decay=options["weight_decay"]),
                                   dict(params=others, weight_decay=0.0)],
                                  lr=1.0, betas=(options["beta1"], options["beta2"]), eps=options["eps"])
    rows, sample = [], 0
    for rate in rates_of(variant):
        optimizer.zero_grad()
        loss = 0.0
        for _ in range(train_options["accumulation"]):
            inputs, targets = batch_of(variant, tokens, sample)
            logits = model.logits(inputs, (train_options["seed"], sample))
            part = F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / train_options["accumulation"]
            part.backward()
            loss += part.item()
            sample += train_options["batch_size"]
        norm = torch.cat([p.grad.flatten() for p in parameters]).norm().item()
        limit = options["grad_clip"]
        for p in parameters:  # PyTorch's clip_grad_norm_ adds 1e-6 to the norm
            p.grad *= limit / norm if 0 < limit < norm else 1.0
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        rows.append((loss, rate, norm))
    return text, torch.tensor(rows)


def config_of(variant):
    """The run as a config of handgrad."""
    lines = []
    for section in ("data", "model", "train", "optimizer", "schedule"):
        lines.append(f"[{section}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in variant[section].items()]
        if section == "data":
            lines.append(f"validation_fraction = {VALIDATION_FRACTION}")
        if section == "train":
            lines.append(f"steps = {STEPS}")
    return "\n".join(lines) + "\n"


def write_training(file, variant, model):
    """Trains the model, and writes what went in and what came out."""
    text, rows = train(model, variant)
    config = torch.tensor(list(config_of(variant).encode()), dtype=torch.uint8)
    losses, rates, norms = rows.T
    save(group_in(file, "training"), config=config, text=text, losses=losses, rates=rates, norms=norms)
    for path, value in model.parameters.items():
        put(file, "training/parameters/" + path, value)

"""Whole small models in plain PyTorch, with every parameter under the name that handgrad gives it."""

import math
import os

import h5py
import torch
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, VOCABULARY, FEED_FORWARD = 2, 4, 16, 8, 2, 11, 24
HEAD_WIDTH = WIDTH // HEADS
THETA = 10000.0

VARIANTS = {
    "gpt": dict(shape="gpt", positions="learned", feed_forward="gelu"),
    "gpt_tanh_sinusoidal": dict(shape="gpt", positions="sinusoidal", feed_forward="gelu_tanh"),
    "llama": dict(shape="llama", pairing="adjacent"),
    "llama_qk_norm_half": dict(shape="llama", pairing="half", qk_norm=True),
}


class Model:
    def __init__(self, variant, ropes):
        self.variant = variant
        self.gpt = variant["shape"] == "gpt"
        self.key_heads = HEADS if self.gpt else 2
        self.ropes = ropes
        self.parameters = {}
        self.declare()

    def add(self, name, *shape, start=0.0):
        # Larger than in training, so that every gradient is far from rounding.
        self.parameters[name] = (start + 0.3 * torch.randn(*shape)).requires_grad_()

    def add_linear(self, name, rows, cols):
        self.add(name + "/weight", rows, cols)
        if self.gpt:
            self.add(name + "/bias", rows)

    def add_norm(self, name, width=WIDTH):
        self.add(name + "/weight", width, start=1.0)
        if self.gpt:
            self.add(name + "/bias", width)

    def declare(self):
        self.add("embedding/weight", VOCABULARY, WIDTH)
        if self.variant.get("positions") == "learned":
            self.add("positions/weight", CONTEXT, WIDTH)
        for n in range(LAYERS):
            block = f"blocks/{n}/"
            self.add_norm(block + "attention_norm")
            self.add_linear(block + "attention/qkv", (HEADS + 2 * self.key_heads) * HEAD_WIDTH, WIDTH)
            if self.variant.get("qk_norm"):
                self.add_norm(block + "attention/q_norm", HEAD_WIDTH)
                self.add_norm(block + "attention/k_norm", HEAD_WIDTH)
            self.add_linear(block + "attention/out", WIDTH, WIDTH)
            self.add_norm(block + "feed_forward_norm")
            self.add_linear(block + "feed_forward/up", FEED_FORWARD, WIDTH)
            if not self.gpt:
                self.add_linear(block + "feed_forward/gate", FEED_FORWARD, WIDTH)
            self.add_linear(block + "feed_forward/down", WIDTH, FEED_FORWARD)
        self.add_norm("final_norm")
        if not self.gpt:
            self.add("head/weight", VOCABULARY, WIDTH)

    def linear(self, name, x):
        return F.linear(x, self.parameters[name + "/weight"], self.parameters.get(name + "/bias"))

    def norm(self, name, x):
        weight = self.parameters[name + "/weight"]
        if self.gpt:
            return F.layer_norm(x, (x.shape[-1],), weight, self.parameters[name + "/bias"], 1e-5)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight

    def attention(self, name, x):
        batch, time, _ = x.shape
        qkv = self.linear(name + "/qkv", x).reshape(batch, time, -1, HEAD_WIDTH)
        q, k, v = qkv.split([HEADS, self.key_heads, self.key_heads], 2)
        if self.variant.get("qk_norm"):
            q, k = self.norm(name + "/q_norm", q), self.norm(name + "/k_norm", k)
        if not self.gpt:
            rope = self.ropes[self.variant["pairing"]]
            positions = torch.arange(time).expand(batch, time)
            q, k = rope(q, positions, THETA), rope(k, positions, THETA)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        k, v = (part.repeat_interleave(HEADS // self.key_heads, 1) for part in (k, v))
        hidden = torch.ones(time, time, dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(HEAD_WIDTH)).masked_fill(hidden, -math.inf)
        return self.linear(name + "/out", (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))

    def feed_forward(self, name, x):
        up = self.linear(name + "/up", x)
        if not self.gpt:
            return self.linear(name + "/down", F.silu(self.linear(name + "/gate", x)) * up)
        if self.variant["feed_forward"] == "gelu":
            return self.linear(name + "/down", F.gelu(up))
        inner = math.sqrt(2 / math.pi) * (up + 0.044715 * up ** 3)
        return self.linear(name + "/down", 0.5 * up * (1 + torch.tanh(inner)))

    def embed(self, tokens):
        x = self.parameters["embedding/weight"][tokens]
        time = tokens.shape[1]
        if self.variant.get("positions") == "learned":
            x = x + self.parameters["positions/weight"][:time]
        if self.variant.get("positions") == "sinusoidal":
            angles = torch.arange(time)[:, None] / 10000.0 ** (torch.arange(0, WIDTH, 2) / WIDTH)
            x = x + torch.stack([angles.sin(), angles.cos()], -1).reshape(time, WIDTH)
        return x

    def logits(self, tokens):
        x = self.embed(tokens)
        for n in range(LAYERS):
            block = f"blocks/{n}/"
            x = x + self.attention(block + "attention", self.norm(block + "attention_norm", x))
            x = x + self.feed_forward(block + "feed_forward", self.norm(block + "feed_forward_norm", x))
        head = self.parameters["embedding/weight" if self.gpt else "head/weight"]
        return F.linear(self.norm("final_norm", x), head)


def write_models(folder, rope_adjacent, rope_half):
    ropes = dict(adjacent=rope_adjacent, half=rope_half)
    for index, (name, variant) in enumerate(VARIANTS.items()):
        torch.manual_seed(100 + index)
        model = Model(variant, ropes)
        stream = torch.randint(VOCABULARY, (BATCH, CONTEXT + 1))
        tokens, targets = stream[:, :-1].contiguous(), stream[:, 1:].contiguous()
        logits = model.logits(tokens)
        loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))
        gradients = torch.autograd.grad(loss, list(model.parameters.values()))
        with h5py.File(os.path.join(folder, name + ".h5"), "w") as file:
            for path, value in model.parameters.items():
                file.create_dataset("parameters/" + path, data=value.detach().numpy())
            for path, value in zip(model.parameters, gradients):
                file.create_dataset("gradients/" + path, data=value.numpy())
            file.create_dataset("tokens", data=tokens.numpy())
            file.create_dataset("targets", data=targets.numpy())
            file.create_dataset("loss", data=loss.detach().numpy())
            file.create_dataset("logits", data=logits.detach().numpy())

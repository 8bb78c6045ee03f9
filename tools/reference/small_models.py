"""Whole small models in plain PyTorch, with every parameter under the name that handgrad gives it."""

import torch
import torch.nn.functional as F

from attention import attention, causal_mask
from common import create, put, save
from random_numbers import dropout
from rotary import ROPES
from training import write_training

SIZES = dict(n_layers=2, n_heads=4, n_kv_heads=4, d_model=16, d_ff=24, context=8)
GPT = dict(SIZES, norm="layer", norm_eps=1e-5, feed_forward="gelu", position="learned", bias=True, tie_embeddings=True,
           qk_norm=False, dropout=0.0)
LLAMA = dict(SIZES, n_kv_heads=2, norm="rms", norm_eps=1e-5, feed_forward="swiglu", position="rope", bias=False,
             tie_embeddings=False, rope_theta=10000.0, rope_pairing="adjacent", qk_norm=False, dropout=0.0)
# eps is large enough for what is left of gradients that are 0 (the key's bias): rounding / eps is a step.
ADAMW = dict(lr=0.02, min_lr=0.002, beta1=0.9, beta2=0.99, eps=1e-6, weight_decay=0.1, grad_clip=1.0)

# What a model and its ten steps of training are, under the keys of handgrad's config.
VARIANTS = {
    "gpt": dict(
        vocabulary=11, batch=2, model=GPT, data=dict(order="epoch"), train=dict(batch_size=2, accumulation=1, seed=1),
        optimizer=ADAMW, schedule=dict(kind="cosine", warmup_steps=3)),
    "gpt_tanh_sinusoidal": dict(
        vocabulary=11, batch=2, model=dict(GPT, position="sinusoidal", feed_forward="gelu_tanh"),
        data=dict(order="random"), train=dict(batch_size=1, accumulation=2, seed=2),
        optimizer=ADAMW, schedule=dict(kind="linear", warmup_steps=2)),
    "llama": dict(
        vocabulary=11, batch=2, model=LLAMA, data=dict(order="epoch"),
        train=dict(batch_size=1, accumulation=3, seed=3), optimizer=dict(ADAMW, beta2=0.95, grad_clip=0.3),
        schedule=dict(kind="warmup_stable_decay", warmup_steps=2, decay_steps=4)),
    "llama_qk_norm_half": dict(
        vocabulary=11, batch=2, model=dict(LLAMA, rope_pairing="half", qk_norm=True), data=dict(order="epoch"),
        train=dict(batch_size=3, accumulation=1, seed=(5 << 32) + 4), optimizer=dict(ADAMW, grad_clip=0.0),
        schedule=dict(kind="constant", warmup_steps=0)),
    "odd_no_positions": dict(
        vocabulary=13, batch=3, model=dict(
            LLAMA, n_layers=1, n_heads=3, n_kv_heads=1, d_model=15, d_ff=17, context=7, feed_forward="relu_squared",
            position="none", tie_embeddings=True, norm_eps=1e-6),
        data=dict(order="epoch"), train=dict(batch_size=3, accumulation=1, seed=5), optimizer=ADAMW,
        schedule=dict(kind="cosine", warmup_steps=1)),
    "gpt_dropout": dict(
        vocabulary=7, batch=1, model=dict(
            GPT, n_layers=1, n_heads=2, n_kv_heads=2, d_model=6, d_ff=10, context=5, dropout=0.2,
            tie_embeddings=False),
        data=dict(order="random"), train=dict(batch_size=2, accumulation=2, seed=6), optimizer=ADAMW,
        schedule=dict(kind="cosine", warmup_steps=0)),
    "smallest": dict(
        vocabulary=2, batch=1, model=dict(
            LLAMA, n_layers=1, n_heads=1, n_kv_heads=1, d_model=1, d_ff=1, context=1, position="none", norm_eps=0.1,
            bias=True),
        data=dict(order="epoch"), train=dict(batch_size=1, accumulation=1, seed=7), optimizer=ADAMW,
        schedule=dict(kind="cosine", warmup_steps=0)),
}


class Model:
    def __init__(self, variant):
        self.vocabulary = variant["vocabulary"]
        self.options = variant["model"]
        self.heads, self.key_heads = self.options["n_heads"], self.options["n_kv_heads"]
        self.width, self.context = self.options["d_model"], self.options["context"]
        self.head_width = self.width // self.heads
        self.parameters = {}
        self.declare()

    def add(self, name, *shape, start=0.0):
        # Larger than in training, so that every gradient is far from rounding.
        self.parameters[name] = (start + 0.3 * torch.randn(*shape)).requires_grad_()

    def add_linear(self, name, rows, cols):
        self.add(name + "/weight", rows, cols)
        if self.options["bias"]:
            self.add(name + "/bias", rows)

    def add_norm(self, name, width):
        self.add(name + "/weight", width, start=1.0)
        if self.options["bias"] and self.options["norm"] == "layer":
            self.add(name + "/bias", width)

    def declare(self):
        width, ff = self.width, self.options["d_ff"]
        self.add("embedding/weight", self.vocabulary, width)
        if self.options["position"] == "learned":
            self.add("positions/weight", self.context, width)
        for n in range(self.options["n_layers"]):
            block = f"blocks/{n}/"
            self.add_norm(block + "attention_norm", width)
            self.add_linear(block + "attention/qkv", (self.heads + 2 * self.key_heads) * self.head_width, width)
            if self.options["qk_norm"]:
                self.add_norm(block + "attention/q_norm", self.head_width)
                self.add_norm(block + "attention/k_norm", self.head_width)
            self.add_linear(block + "attention/out", width, width)
            self.add_norm(block + "feed_forward_norm", width)
            self.add_linear(block + "feed_forward/up", ff, width)
            if self.options["feed_forward"] == "swiglu":
                self.add_linear(block + "feed_forward/gate", ff, width)
            self.add_linear(block + "feed_forward/down", width, ff)
        self.add_norm("final_norm", width)
        if not self.options["tie_embeddings"]:
            self.add("head/weight", self.vocabulary, width)

    def linear(self, name, x):
        return F.linear(x, self.parameters[name + "/weight"], self.parameters.get(name + "/bias"))

    def norm(self, name, x):
        weight = self.parameters[name + "/weight"]
        if self.options["norm"] == "layer":
            return F.layer_norm(x, (x.shape[-1],), weight, self.parameters.get(name + "/bias"), self.options["norm_eps"])
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.options["norm_eps"]) * weight

    def mask(self, site, rows_per_sample, training):
        """Probability, seed, site and first row of a dropout. training: seed and first sample, or nothing."""
        seed, first = training or (0, 0)
        return self.options["dropout"] if training else 0.0, seed, site, first * rows_per_sample

    def attention(self, layer, x, training):
        name, (batch, time, _) = f"blocks/{layer}/attention", x.shape
        qkv = self.linear(name + "/qkv", x).reshape(batch, time, -1, self.head_width)
        q, k, v = qkv.split([self.heads, self.key_heads, self.key_heads], 2)
        if self.options["qk_norm"]:
            q, k = self.norm(name + "/q_norm", q), self.norm(name + "/k_norm", k)
        if self.options["position"] == "rope":
            rope = ROPES[self.options["rope_pairing"]]
            positions = torch.arange(time).expand(batch, time)
            q, k = (rope(part, positions, self.options["rope_theta"]) for part in (q, k))
        y = attention(q, k, v, causal_mask(time, time), drop=self.mask(1 + 3 * layer, self.heads * time, training))
        return dropout(self.linear(name + "/out", y.reshape(x.shape)), *self.mask(2 + 3 * layer, time, training))

    def feed_forward(self, layer, x, training):
        name, kind = f"blocks/{layer}/feed_forward", self.options["feed_forward"]
        up = self.linear(name + "/up", x)
        if kind == "swiglu":
            hidden = F.silu(self.linear(name + "/gate", x)) * up
        else:
            hidden = dict(gelu=F.gelu, gelu_tanh=lambda x: F.gelu(x, approximate="tanh"),
                           relu_squared=lambda x: F.relu(x) ** 2)[kind](up)
        return dropout(self.linear(name + "/down", hidden), *self.mask(3 + 3 * layer, x.shape[1], training))

    def embed(self, tokens, training):
        x = self.parameters["embedding/weight"][tokens]
        time = tokens.shape[1]
        if self.options["position"] == "learned":
            x = x + self.parameters["positions/weight"][:time]
        if self.options["position"] == "sinusoidal":
            angles = torch.arange(time)[:, None] / 10000.0 ** (torch.arange(0, self.width, 2) / self.width)
            x = x + torch.stack([angles.sin(), angles.cos()], -1).reshape(time, self.width)
        return dropout(x, *self.mask(0, time, training))

    def logits(self, tokens, training=None):
        x = self.embed(tokens, training)
        for n in range(self.options["n_layers"]):
            x = x + self.attention(n, self.norm(f"blocks/{n}/attention_norm", x), training)
            x = x + self.feed_forward(n, self.norm(f"blocks/{n}/feed_forward_norm", x), training)
        head = self.parameters["embedding/weight" if self.options["tie_embeddings"] else "head/weight"]
        return F.linear(self.norm("final_norm", x), head)


def check_against_torch_layers(model, tokens, logits):
    """The GPT shape is PyTorch's own encoder layer with the norm first: the same logits, or this maker is wrong."""
    o, time = model.options, tokens.shape[1]
    x = model.embed(tokens, None)
    for n in range(o["n_layers"]):
        layer = torch.nn.TransformerEncoderLayer(o["d_model"], o["n_heads"], o["d_ff"], 0.0, "gelu", o["norm_eps"],
                                                 batch_first=True, norm_first=True)
        names = {"norm1": "attention_norm", "self_attn.in_proj_": "attention/qkv", "self_attn.out_proj": "attention/out",
                 "norm2": "feed_forward_norm", "linear1": "feed_forward/up", "linear2": "feed_forward/down"}
        for ours, theirs in ((f"blocks/{n}/{value}/", key) for key, value in names.items()):
            for part in ("weight", "bias"):
                key = theirs + part if theirs.endswith("_") else f"{theirs}.{part}"
                layer.get_parameter(key).data = model.parameters[ours + part].detach()
        x = layer(x, src_mask=~causal_mask(time, time))
    head = model.parameters["embedding/weight"]
    assert torch.allclose(F.linear(model.norm("final_norm", x), head), logits, rtol=1e-12, atol=1e-12)


def write_models(folder):
    for index, (name, variant) in enumerate(VARIANTS.items()):
        torch.manual_seed(100 + index)
        model = Model(variant)
        stream = torch.randint(model.vocabulary, (variant["batch"], model.context + 1))
        tokens, targets = stream[:, :-1].contiguous(), stream[:, 1:].contiguous()
        logits = model.logits(tokens)
        loss = F.cross_entropy(logits.reshape(-1, model.vocabulary), targets.reshape(-1))
        gradients = torch.autograd.grad(loss, list(model.parameters.values()))
        if name == "gpt":
            check_against_torch_layers(model, tokens, logits)
        with create(folder, name + ".h5") as file:
            for path, value in model.parameters.items():
                put(file, "parameters/" + path, value)
            for path, value in zip(model.parameters, gradients):
                put(file, "gradients/" + path, value)
            save(file, tokens=tokens, targets=targets, loss=loss, logits=logits)
            write_training(file, variant, model)

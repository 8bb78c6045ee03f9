#!/usr/bin/python3
"""Writes the reference values that handgrad's tests compare with, made by PyTorch in float64.

Usage: make_reference.py [FOLDER]      (default: tests/data beside this repository's tools)

Needs Debian's python3-torch and python3-h5py. The files are committed: neither building nor testing needs this script.
Arrays are laid out as handgrad takes them; d<name> is the gradient of <y, dy> with respect to <name>.
"""

import math
import os
import sys

import h5py
import torch
import torch.nn.functional as F

from small_models import write_models

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def variable(*shape, spread=1.0):
    return (spread * torch.randn(*shape)).requires_grad_()


def save(group, **arrays):
    for name, array in arrays.items():
        if isinstance(array, torch.Tensor):
            array = array.detach().contiguous().numpy()
        group.create_dataset(name, data=array)


def save_case(file, path, y, inputs, **others):
    """The inputs, y, a random dy, and the gradient of every input."""
    dy = torch.randn(y.shape)
    gradients = torch.autograd.grad(y, list(inputs.values()), dy)
    save(file.create_group(path), y=y, dy=dy, **inputs, **others,
         **{"d" + name: g for name, g in zip(inputs, gradients)})


def attention(q, k, v, allowed=None, scale=None):
    """Of (B, T, H, D): key heads are repeated for the query heads that share them."""
    group = q.shape[2] // k.shape[2]
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2)


def causal_mask(queries, keys):
    """The last query sees every key."""
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


def random_mask(*shape):
    """Of any broadcast shape; the first key is visible to all."""
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    return mask


def write_attention(file):
    def case(name, sizes, causal=True, mask=None, scale=None):
        batch, queries, keys, heads, key_heads, width, value_width = sizes
        inputs = dict(q=variable(batch, queries, heads, width), k=variable(batch, keys, key_heads, width),
                      v=variable(batch, keys, key_heads, value_width))
        allowed = causal_mask(queries, keys) if causal else None
        if mask is not None:
            allowed = mask if allowed is None else allowed & mask
        y = attention(**inputs, allowed=allowed, scale=scale)
        others = dict(causal=int(causal), scale=float(scale or 0))
        if mask is not None:
            others["mask"] = mask.to(torch.uint8)
        save_case(file, "attention/" + name, y, inputs, **others)

    case("causal", (2, 5, 5, 2, 2, 4, 4))
    case("full", (2, 5, 5, 2, 2, 4, 4), causal=False)
    case("scaled", (1, 4, 4, 1, 1, 3, 3), scale=0.3)
    case("value_width", (1, 6, 6, 2, 2, 4, 3))
    case("fewer_queries", (2, 3, 7, 2, 2, 4, 4))
    case("more_queries", (1, 7, 3, 2, 2, 4, 4), causal=False)
    case("grouped", (2, 6, 6, 6, 2, 4, 3))
    case("one_key_head", (1, 4, 9, 4, 1, 2, 2))
    case("mask_qk", (2, 4, 6, 2, 2, 4, 4), causal=False, mask=random_mask(4, 6))
    case("mask_k", (2, 4, 6, 2, 2, 4, 4), causal=False, mask=random_mask(6))
    case("mask_b11k", (2, 4, 6, 2, 2, 4, 4), causal=False, mask=random_mask(2, 1, 1, 6))
    case("mask_1h1k", (2, 4, 6, 2, 2, 4, 4), causal=False, mask=random_mask(1, 2, 1, 6))
    case("mask_hqk", (2, 4, 6, 2, 2, 4, 4), causal=False, mask=random_mask(2, 4, 6))
    case("mask_bhqk", (2, 4, 6, 4, 2, 4, 4), causal=False, mask=random_mask(2, 4, 4, 6))
    case("mask_and_causal", (2, 6, 6, 2, 1, 4, 4), mask=random_mask(2, 1, 6, 6))


def rope_angles(positions, width, theta):
    return positions[..., None] * theta ** (-torch.arange(0, width, 2) / width)


def rope_adjacent(x, positions, theta):
    turn = torch.polar(torch.ones(()), rope_angles(positions, x.shape[-1], theta))[:, :, None]
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn).reshape(x.shape)


def rope_half(x, positions, theta):
    angles = rope_angles(positions, x.shape[-1], theta)[:, :, None]
    cosines, sines = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat([-second, first], -1) * sines


def write_rope(file):
    for name, rope in (("adjacent", rope_adjacent), ("half", rope_half)):
        x = variable(2, 4, 2, 6)
        positions = torch.tensor([[0, 1, 2, 3], [17, 5, 5, 900]])
        save_case(file, "rope/" + name, rope(x, positions, 500.0), dict(x=x), positions=positions, theta=500.0)


def write_norms(file):
    for name, spread in (("plain", 1.0), ("small", 1e-3)):
        x, weight, bias = variable(2, 3, 7, spread=spread), variable(7), variable(7)
        y = F.layer_norm(x, (7,), weight, bias, 1e-5)
        save_case(file, "layer_norm/" + name, y, dict(x=x, weight=weight, bias=bias), eps=1e-5)
        x, weight = variable(2, 3, 7, spread=spread), variable(7)
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight
        save_case(file, "rms_norm/" + name, y, dict(x=x, weight=weight), eps=1e-6)


def write_losses(file):
    targets = torch.tensor([1, -100, 4, 0, 0, 2, -100, 3])
    for name, smoothing in (("plain", 0.0), ("smoothed", 0.1)):
        logits = variable(8, 5, spread=3.0)
        y = F.cross_entropy(logits, targets, label_smoothing=smoothing, ignore_index=-100)
        save_case(file, "cross_entropy/" + name, y, dict(logits=logits), targets=targets, smoothing=smoothing)
        x, weight = variable(8, 6), variable(5, 6)
        y = F.cross_entropy(x @ weight.T, targets, label_smoothing=smoothing, ignore_index=-100)
        save_case(file, "linear_cross_entropy/" + name, y, dict(x=x, weight=weight), targets=targets,
                  smoothing=smoothing)


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def write_elementwise(file):
    functions = dict(gelu=F.gelu, gelu_tanh=gelu_tanh, silu=F.silu, relu=F.relu,
                     relu_squared=lambda x: F.relu(x).square(), softmax=lambda x: x.softmax(-1),
                     log_softmax=lambda x: x.log_softmax(-1))
    for name, function in functions.items():
        x = variable(5, 9, spread=3.0)
        save_case(file, "unary/" + name, function(x), dict(x=x))
    gate, up = variable(4, 5), variable(4, 5)
    save_case(file, "swiglu", F.silu(gate) * up, dict(gate=gate, up=up))


def write_linear(file):
    x, weight, bias = variable(2, 3, 5), variable(4, 5), variable(4)
    save_case(file, "linear", F.linear(x, weight, bias), dict(x=x, weight=weight, bias=bias))
    table, ids = variable(6, 3), torch.tensor([[5, 0, 5, 1], [2, 2, 2, 5]])
    save_case(file, "embedding", F.embedding(ids, table), dict(table=table), ids=ids)


def write_adamw(file):
    """Twenty updates of a weight that decays and a bias that does not, with a rate that changes."""
    weight, bias = variable(3, 4), variable(5)
    group = file.create_group("adamw")
    save(group, weight=weight, bias=bias, beta1=0.9, beta2=0.99, eps=1e-8, decay=0.1)
    optimizer = torch.optim.AdamW([dict(params=[weight], weight_decay=0.1), dict(params=[bias], weight_decay=0.0)],
                                  lr=1.0, betas=(0.9, 0.99), eps=1e-8)
    history = dict(rates=[], weight_gradients=[], bias_gradients=[], weights=[], biases=[])
    for step in range(20):
        rate = 0.01 * (20 - step) / 20
        for parameters in optimizer.param_groups:
            parameters["lr"] = rate
        weight.grad, bias.grad = torch.randn(3, 4) * 10.0 ** (step % 3 - 2), torch.randn(5)
        optimizer.step()
        history["rates"].append(torch.tensor(rate))
        history["weight_gradients"].append(weight.grad)
        history["bias_gradients"].append(bias.grad)
        history["weights"].append(weight.detach().clone())
        history["biases"].append(bias.detach().clone())
    save(group, **{name: torch.stack(values) for name, values in history.items()})


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..", "tests", "data")
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(2026)
    with h5py.File(os.path.join(folder, "operations.h5"), "w") as file:
        for write in (write_attention, write_rope, write_norms, write_losses, write_elementwise, write_linear,
                      write_adamw):
            write(file)
    write_models(folder, rope_adjacent, rope_half)


if __name__ == "__main__":
    main()

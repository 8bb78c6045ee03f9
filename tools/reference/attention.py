"""Attention, for handgrad's textbook form and for its tiled one: sizes, grouped queries, masks of every shape."""

import itertools
import math

import torch

from common import add_case, save_case, variable
from random_numbers import dropout


def attention(q, k, v, allowed=None, scale=None, drop=None):
    """Of (B, T, H, D): key heads are repeated for the query heads that share them. drop: probability, seed, site, first
    row. A query that may attend to nothing gives zeros: its scores are replaced, and its probabilities taken away."""
    group = q.shape[2] // k.shape[2]
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if allowed is not None:
        empty = ~allowed.any(-1, keepdim=True)
        scores = scores.masked_fill(~allowed & ~empty, -math.inf)
    p = scores.softmax(-1)
    if allowed is not None:
        p = torch.where(allowed, p, torch.zeros(()))
    if drop:
        p = dropout(p, *drop)
    return (p @ v).transpose(1, 2)


def causal_mask(queries, keys):
    """The last query sees every key."""
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


def random_mask(*shape):
    """Of any broadcast shape; the first key is visible to all."""
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    return mask


def shapes_of(sizes):
    batch, queries, keys, heads, key_heads, width, value_width = sizes
    return dict(q=(batch, queries, heads, width), k=(batch, keys, key_heads, width),
                v=(batch, keys, key_heads, value_width))


def visible(sizes, causal, mask):
    allowed = causal_mask(sizes[1], sizes[2]) if causal else None
    if mask is not None:
        allowed = mask if allowed is None else allowed & mask
    return allowed


def options_of(causal, mask, scale=None, drop=None):
    options = dict(causal=int(causal), scale=float(scale or 0))
    if mask is not None:
        options["mask"] = mask.to(torch.uint8)
    if drop:
        options.update(zip(("dropout", "seed", "site", "first_row"), drop))
    return options


def write_attention(file):
    def case(name, sizes, causal=True, mask=None, scale=None):
        inputs = {name: variable(*shape) for name, shape in shapes_of(sizes).items()}
        y = attention(**inputs, allowed=visible(sizes, causal, mask), scale=scale)
        save_case(file, "attention/" + name, y, inputs, **options_of(causal, mask, scale))

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


def own_case(file, path, sizes, causal=True, mask=None, scale=None, drop=None, spread=1.0):
    add_case(file, path, shapes_of(sizes),
             lambda q, k, v: attention(q, k, v, visible(sizes, causal, mask), scale, drop), spread,
             **options_of(causal, mask, scale, drop))


def write_attention_sizes(file):
    def case(name, *sizes, **options):
        own_case(file, "attention/" + name, sizes, **options)

    # B, Q, K, H, H_kv, D, D_v
    case("ones", 1, 1, 1, 1, 1, 1, 1)
    case("ones_full", 1, 1, 1, 1, 1, 1, 1, causal=False)
    case("width_one", 1, 3, 3, 2, 2, 1, 1)
    case("wide_values", 1, 3, 5, 1, 1, 2, 7)
    case("narrow_values", 1, 5, 5, 3, 3, 5, 1)
    case("last_query", 2, 1, 9, 2, 1, 3, 3)
    case("one_key", 1, 3, 1, 2, 1, 3, 2, causal=False)
    case("two_queries_less", 1, 5, 7, 3, 1, 3, 5)
    case("odd", 1, 7, 11, 3, 1, 5, 3)
    case("odd_full", 1, 9, 5, 3, 3, 1, 7, causal=False)
    case("groups_of_three", 1, 4, 4, 9, 3, 2, 2)
    case("groups_of_two", 1, 5, 5, 4, 2, 3, 1, causal=False)
    case("many_tiles", 1, 13, 17, 1, 1, 1, 1)
    case("scale_small", 1, 4, 4, 2, 1, 3, 3, scale=1e-3)
    case("scale_large", 1, 4, 4, 2, 1, 3, 3, scale=3.0)
    case("sharp", 1, 4, 6, 2, 1, 3, 3, spread=4.0)
    case("dropout", 2, 5, 7, 4, 2, 3, 3, drop=(0.3, 9, 2, 5))
    case("dropout_full", 1, 3, 9, 2, 2, 2, 3, causal=False, drop=(0.5, (7 << 32) + 1, 4, 1000))
    # Queries that see nothing.
    case("nothing_visible", 2, 3, 4, 2, 1, 3, 2, causal=False, mask=torch.zeros(1, 1, dtype=torch.bool))
    some = torch.ones(3, 5, dtype=torch.bool)
    some[1] = False
    case("an_empty_row", 1, 3, 5, 2, 2, 3, 3, causal=False, mask=some)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)  # only what the causal rule hides
    case("mask_and_causal_exclude", 1, 4, 4, 2, 1, 3, 3, mask=future)
    case("padded_left", 2, 5, 5, 2, 1, 3, 3, mask=(torch.arange(5) >= torch.tensor([[2], [0]])).view(2, 1, 1, 5))


def write_masks(file):
    """Every shape that can be broadcast to (B, H, Q, K), alone and joined with the causal rule; empty rows occur."""
    sizes = 2, 3, 5, 4, 2, 1, 1
    full = sizes[0], sizes[3], sizes[1], sizes[2]
    for rank in range(5):
        for each in itertools.product((False, True), repeat=rank):
            shape = tuple(full[4 - rank + i] if whole else 1 for i, whole in enumerate(each))
            letters = "".join("bhqk"[4 - rank + i] if whole else "1" for i, whole in enumerate(each)) or "scalar"
            for causal in (False, True):
                torch.manual_seed(rank * 1000 + sum(2 ** i for i, whole in enumerate(each) if whole) * 2 + causal)
                mask = torch.rand(shape) < 0.6
                if not any(each):
                    mask = torch.ones(shape, dtype=torch.bool)
                own_case(file, f"masks/{letters}{'_causal' if causal else ''}", sizes, causal, mask)

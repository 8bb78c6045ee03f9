"""Rotary position embedding in both pairings."""

import torch

from common import SLICE, SPLIT_LAST, add_case, save_case, variable


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


ROPES = dict(adjacent=rope_adjacent, half=rope_half)


def write_rope(file):
    for name, rope in ROPES.items():
        x = variable(2, 4, 2, 6)
        positions = torch.tensor([[0, 1, 2, 3], [17, 5, 5, 900]])
        save_case(file, "rope/" + name, rope(x, positions, 500.0), dict(x=x), positions=positions, theta=500.0,
                  half=int(name == "half"))


def write_rope_options(file):
    def case(name, shape, positions, theta=10000.0, **options):
        """Positions (T) serve every sequence, (B, T) one each."""
        positions = torch.tensor(positions)
        for pairing, rope in ROPES.items():
            add_case(file, f"rope/{name}_{pairing}", dict(x=shape),
                     lambda x: rope(x, positions.expand(x.shape[:2]), theta), positions=positions, theta=theta,
                     half=int(pairing == "half"), **options)

    case("ones", (1, 1, 1, 2), [0])
    case("ones_later", (1, 1, 1, 2), [[7]])
    case("shared", (3, 5, 1, 4), [0, 1, 2, 3, 4])
    case("each", (2, 3, 3, 4), [[7, 2, 5], [0, 0, 1]], 100.0)
    case("odd", (3, 5, 3, 2), [2, 3, 5, 7, 11])
    case("large_theta", (2, 3, 1, 6), [[1, 64, 511], [3, 2, 1000]], 500000.0)
    case("theta_one", (1, 3, 1, 6), [0, 1, 2], 1.0)
    case("packed", (2, 3, 16), [0, 1, 2], views=dict(x=[(SLICE, 2, 4, 8), (SPLIT_LAST, 2)]))

"""Activations, softmax, dropout, norms: functions of elements and of lines."""

import math

import torch
import torch.nn.functional as F

from common import SLICE, SPLIT_LAST, TRANSPOSE, add_case, save_case, variable
from random_numbers import dropout


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def write_elementwise(file):
    functions = dict(gelu=F.gelu, gelu_tanh=gelu_tanh, silu=F.silu, relu=F.relu,
                     relu_squared=lambda x: F.relu(x).square(), softmax=lambda x: x.softmax(-1),
                     log_softmax=lambda x: x.log_softmax(-1))
    for name, function in functions.items():
        x = variable(5, 9, spread=3.0)
        save_case(file, name + "/plain", function(x), dict(x=x))
    gate, up = variable(4, 5), variable(4, 5)
    save_case(file, "swiglu/plain", F.silu(gate) * up, dict(gate=gate, up=up))


def write_activations(file):
    functions = dict(gelu=F.gelu, gelu_tanh=lambda x: F.gelu(x, approximate="tanh"), silu=F.silu, relu=F.relu,
                     relu_squared=lambda x: F.relu(x) ** 2)
    grid = torch.linspace(-9, 9, 37)
    for name, f in functions.items():
        add_case(file, name + "/one", dict(x=(1,)), f)
        add_case(file, name + "/ones", dict(x=(1, 1, 1)), f)
        add_case(file, name + "/odd", dict(x=(3, 1, 7)), f)
        add_case(file, name + "/wide", dict(x=(5, 3)), f, spread=8.0)
        add_case(file, name + "/far", dict(x=torch.tensor([-700.0, -40.0, -20.0, 20.0, 40.0, 700.0])), f)
        add_case(file, name + "/small", dict(x=(3, 5)), f, spread=1e-9)
        add_case(file, name + "/grid", dict(x=grid), f)  # 0, the kink, among them
        add_case(file, name + "/of_a_slice", dict(x=(3, 7)), f, views=dict(x=[(SLICE, 1, 2, 3)]))

    def swiglu(gate, up):
        return F.silu(gate) * up

    add_case(file, "swiglu/ones", dict(gate=(1, 1), up=(1, 1)), swiglu)
    add_case(file, "swiglu/odd", dict(gate=(3, 1, 7), up=(3, 1, 7)), swiglu)
    add_case(file, "swiglu/wide", dict(gate=(5, 3), up=(5, 3)), swiglu, spread=8.0)
    add_case(file, "swiglu/grid", dict(gate=grid, up=grid.flip(0)), swiglu)
    add_case(file, "swiglu/of_slices", dict(gate=(3, 7), up=(3, 5)), swiglu,
             views=dict(gate=[(SLICE, 1, 2, 3)], up=[(SLICE, 1, 0, 3)]))


def write_softmax(file):
    shapes = dict(one=((1,), 0), ones=((3, 1), -1), row=((1, 7), -1), first=((3, 5, 2), 0), middle=((3, 5, 2), 1),
                  last=((3, 5, 2), 2), second_last=((3, 5, 2), -2), third_last=((3, 5, 2), -3), rank_four=((2, 3, 1, 5), 1),
                  odd=((7, 5, 3), -1), long=((1, 131), -1))
    hidden = torch.tensor([[0, 1, 0, 0, 1], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]]).bool()
    for operation, f in dict(softmax=torch.softmax, log_softmax=torch.log_softmax).items():
        for name, (shape, axis) in shapes.items():
            add_case(file, f"{operation}/{name}", dict(x=shape), lambda x: f(x, axis), axis=axis)
        add_case(file, operation + "/wide", dict(x=(3, 5)), lambda x: f(x, -1), spread=300.0)
        add_case(file, operation + "/shifted", dict(x=1000 + torch.linspace(-3, 3, 15).view(3, 5)), lambda x: f(x, -1))
        add_case(file, operation + "/transposed", dict(x=(3, 5)), lambda x: f(x, -1), views=dict(x=[(TRANSPOSE, 0, 1)]))
        add_case(file, operation + "/of_a_slice", dict(x=(3, 7)), lambda x: f(x, -1), views=dict(x=[(SLICE, 1, 1, 4)]))
    add_case(file, "softmax/some_hidden", dict(x=torch.linspace(-2, 2, 15).view(3, 5).masked_fill(hidden, -torch.inf)),
             lambda x: x.softmax(-1))
    # A line of nothing but -infinity: zeros, and zero gradients. PyTorch's own answer is NaN.
    x = torch.linspace(-2, 2, 15).view(3, 5)
    x[1] = -torch.inf
    add_case(file, "softmax/an_empty_line", dict(x=x), lambda x: torch.where(
        (x == -torch.inf).all(-1, keepdim=True), torch.zeros(()),
        torch.where((x == -torch.inf).all(-1, keepdim=True), torch.zeros(()), x).softmax(-1)))


def write_dropout(file):
    """The mask is a function of four numbers, written again in random_numbers.py."""
    def case(name, shape, *mask, **options):
        add_case(file, "dropout/" + name, dict(x=shape), lambda x: dropout(x, *mask),
                 **dict(zip(("dropout", "seed", "site", "first_row"), mask)), **options)

    case("plain", (7, 5), 0.3, 9, 2, 5)
    case("nothing", (3, 5), 0.0, 9, 2, 5)
    case("half", (3, 4, 6), 0.5, 1, 0, 0)
    case("nearly_all", (5, 9), 0.9, (5 << 32) + 3, 7, 1 << 33)
    case("one", (1,), 0.1, 3, 1, 0)
    case("ones", (3, 1, 1), 0.5, 4, 1, 2)
    case("odd", (3, 1, 7), 0.2, 11, 31, 1)
    case("of_a_slice", (3, 7), 0.4, 2, 3, 4, views=dict(x=[(SLICE, 1, 1, 5)]))


def write_norms(file):
    for name, spread in (("plain", 1.0), ("small", 1e-3)):
        x, weight, bias = variable(2, 3, 7, spread=spread), variable(7), variable(7)
        y = F.layer_norm(x, (7,), weight, bias, 1e-5)
        save_case(file, "layer_norm/" + name, y, dict(x=x, weight=weight, bias=bias), eps=1e-5)
        x, weight = variable(2, 3, 7, spread=spread), variable(7)
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight
        save_case(file, "rms_norm/" + name, y, dict(x=x, weight=weight), eps=1e-6)


def write_norm_options(file):
    def layer(name, x, eps=1e-5, bias=True, width=None, **options):
        width = width or x[-1]
        add_case(file, "layer_norm/" + name, dict(x=x, weight=(width,), **(dict(bias=(width,)) if bias else {})),
                 lambda x, weight, bias=None: F.layer_norm(x, (width,), weight, bias, eps), eps=eps, **options)

    def rms(name, x, eps=1e-5, width=None, **options):
        add_case(file, "rms_norm/" + name, dict(x=x, weight=(width or x[-1],)),
                 lambda x, weight: x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight, eps=eps, **options)

    for norm in (layer, rms):
        # Of a width of one little is left but rounding, which grows with 1 / sqrt(eps).
        norm("ones", (1, 1), 1.0)
        norm("width_one", (3, 5, 1), 1.0)
        norm("width_two", (3, 2), 0.1)
        norm("one_row", (7,))
        norm("odd", (3, 1, 5, 9))
        norm("eps_large", (3, 5), 0.5)
        norm("eps_small", (3, 5), 1e-12)
        norm("large", (3, 5), spread=1e6)
        norm("of_a_slice", (2, 3, 7), width=5, views=dict(x=[(SLICE, 2, 1, 5)]))
    layer("no_bias", (2, 3, 5), bias=False)
    layer("no_bias_ones", (1, 1), 1.0, bias=False)
    rms("heads", (2, 3, 12), width=4, views=dict(x=[(SLICE, 2, 4, 8), (SPLIT_LAST, 2)]))
    rms("heads_of_one", (2, 3, 4), 1.0, width=1, views=dict(x=[(SPLIT_LAST, 4)]))

"""Sums, products, views, tables: all that is linear in each of its operands."""

import torch
import torch.nn.functional as F

from common import RESHAPE, SLICE, SPLIT_LAST, TRANSPOSE, add_case, save_case, start, variable


def write_linear(file):
    x, weight, bias = variable(2, 3, 5), variable(4, 5), variable(4)
    save_case(file, "linear/plain", F.linear(x, weight, bias), dict(x=x, weight=weight, bias=bias))
    table, ids = variable(6, 3), torch.tensor([[5, 0, 5, 1], [2, 2, 2, 5]])
    save_case(file, "embedding/plain", F.embedding(ids, table), dict(table=table), ids=ids)


def write_broadcast(file):
    pairs = dict(same=((2, 3), (2, 3)), row=((2, 3), (3,)), column=((5, 3), (5, 1)), crossed=((2, 1, 4), (3, 1)),
                 one=((5, 3), (1,)), one_first=((1,), (3, 5)), scalar=((3, 5), ()), scalars=((), ()), ones=((1,), (1,)),
                 leading_ones=((1, 1, 3), (2, 3)), rank_four=((2, 1, 3, 1), (1, 5, 1, 2)), odd=((7, 5, 3), (5, 1)),
                 outer=((7, 1), (1, 5)), batch=((3, 1, 1), (3, 5, 7)), many_rows=((61, 1), (1,)))
    for operation, f in dict(add=torch.add, mul=torch.mul).items():
        for name, (a, b) in pairs.items():
            add_case(file, f"{operation}/{name}", dict(a=a, b=b), f)
        add_case(file, f"{operation}/twice_the_same", dict(a=(3, 5)), lambda a, f=f: f(a, a))
        add_case(file, f"{operation}/transposed", dict(a=(3, 5), b=(5, 3)), f, views=dict(a=[(TRANSPOSE, 0, 1)]))
        add_case(file, f"{operation}/of_slices", dict(a=(3, 7), b=(5, 3)), f,
                 views=dict(a=[(SLICE, 1, 2, 3)], b=[(SLICE, 0, 1, 3)]))


def write_reductions(file):
    shapes = dict(plain=(3, 5), scalar=(), one=(1,), ones=(1, 1, 1), odd=(7, 3, 5), long=(1, 131))
    for operation, f in dict(sum=torch.sum, mean=torch.mean).items():
        for name, shape in shapes.items():
            add_case(file, f"{operation}/{name}", dict(x=shape), f)
        add_case(file, f"{operation}/of_a_slice", dict(x=(3, 5, 2)), f, views=dict(x=[(SLICE, 1, 1, 3)]))
        add_case(file, f"{operation}/transposed", dict(x=(3, 5)), f, views=dict(x=[(TRANSPOSE, 0, 1)]))
    for name, factor in dict(plain=-1.7, nothing=0.0, one=1.0, tiny=1e-30).items():
        add_case(file, "scale/" + name, dict(x=(3, 5)), lambda x: x * factor, factor=factor)
    add_case(file, "scale/ones", dict(x=(1, 1)), lambda x: x * 3.0, factor=3.0)
    add_case(file, "scale/odd", dict(x=(7, 1, 3)), lambda x: x * 0.3, factor=0.3)
    add_case(file, "scale/of_a_slice", dict(x=(3, 7)), lambda x: x * 0.3, factor=0.3, views=dict(x=[(SLICE, 1, 1, 5)]))


def write_views(file):
    """Views copied into memory of their own, and values joined."""
    views = dict(nothing=((3, 5), []), ones=((1, 1), [(TRANSPOSE, 0, 1)]), transposed=((3, 5), [(TRANSPOSE, 0, 1)]),
                 last_two=((2, 3, 5), [(TRANSPOSE, -1, -2)]), outer_two=((2, 3, 5), [(TRANSPOSE, 0, 2)]),
                 twice=((2, 3, 5), [(TRANSPOSE, 0, 1), (TRANSPOSE, 1, 2)]), slice_rows=((7, 3), [(SLICE, 0, 2, 3)]),
                 slice_columns=((3, 7), [(SLICE, 1, 1, 5)]), slice_one=((3, 7), [(SLICE, -1, 6, 1)]),
                 slice_of_slice=((5, 7), [(SLICE, 1, 1, 5), (SLICE, 0, 1, 3), (SLICE, 1, 2, 2)]),
                 heads=((2, 3, 12), [(SPLIT_LAST, 3), (TRANSPOSE, 1, 2)]),
                 packed_heads=((2, 3, 16), [(SLICE, 2, 4, 8), (SPLIT_LAST, 2), (TRANSPOSE, 1, 2)]),
                 one_head=((2, 3, 5), [(SPLIT_LAST, 1), (TRANSPOSE, 1, 2)]),
                 heads_of_one=((2, 3, 5), [(SPLIT_LAST, 5), (TRANSPOSE, 1, 2)]),
                 reshaped=((3, 10), [(RESHAPE, 2, 3, 5), (TRANSPOSE, 0, 2)]))
    for name, (shape, steps) in views.items():
        add_case(file, "dense/" + name, dict(x=shape), lambda x: x.contiguous() * 1, views=dict(x=steps))
    joins = dict(rows=((2, 3), (5, 3), 0), columns=((3, 2), (3, 5), 1), last=((3, 2), (3, 5), -1),
                 middle=((2, 3, 2), (2, 1, 2), 1), ones=((1,), (1,), 0), odd=((3, 5, 7), (3, 5, 1), 2),
                 rank_four=((2, 1, 3, 2), (2, 5, 3, 2), -3))
    for name, (a, b, axis) in joins.items():
        add_case(file, "concat/" + name, dict(a=a, b=b), lambda a, b: torch.cat([a, b], axis), axis=axis)
    add_case(file, "concat/of_views", dict(a=(3, 5), b=(7, 3)), lambda a, b: torch.cat([a, b], 0), axis=0,
             views=dict(a=[(TRANSPOSE, 0, 1)], b=[(SLICE, 0, 2, 4)]))
    add_case(file, "concat/twice_the_same", dict(a=(3, 5)), lambda a: torch.cat([a, a], 1), axis=1)


def write_matmul(file):
    flip = [(TRANSPOSE, -1, -2)]
    pairs = dict(plain=((3, 4), (4, 5)), ones=((1, 1), (1, 1)), row_by_column=((1, 5), (5, 1)),
                 column_by_row=((5, 1), (1, 7)), row=((1, 3), (3, 7)), column=((7, 3), (3, 1)),
                 batched=((2, 3, 4), (2, 4, 5)), batch_of_one=((1, 3, 4), (2, 4, 5)), one_for_all=((3, 2, 4), (4, 5)),
                 leading=((2, 3, 3, 4), (3, 4, 5)), middle=((2, 3, 3, 4), (2, 1, 4, 5)),
                 crossed=((2, 1, 3, 4), (3, 4, 1)), odd=((3, 7, 5), (3, 5, 1)), long=((1, 131), (131, 1)))
    for name, (a, b) in pairs.items():
        add_case(file, "matmul/" + name, dict(a=a, b=b), torch.matmul)
        if name in ("plain", "batched", "middle"):
            turned = [shape[:-2] + (shape[-1], shape[-2]) for shape in (a, b)]
            add_case(file, f"matmul/{name}_ta", dict(a=turned[0], b=b), torch.matmul, views=dict(a=flip))
            add_case(file, f"matmul/{name}_tb", dict(a=a, b=turned[1]), torch.matmul, views=dict(b=flip))
            add_case(file, f"matmul/{name}_ta_tb", dict(a=turned[0], b=turned[1]), torch.matmul,
                     views=dict(a=flip, b=flip))
    add_case(file, "matmul/factor", dict(a=(3, 4), b=(4, 5)), lambda a, b: 0.7 * (a @ b), factor=0.7)
    add_case(file, "matmul/factor_batched", dict(a=(2, 3, 4), b=(4, 5)), lambda a, b: -3.0 * (a @ b), factor=-3.0)
    add_case(file, "matmul/of_slices", dict(a=(3, 7), b=(6, 5)), torch.matmul,
             views=dict(a=[(SLICE, 1, 1, 4)], b=[(SLICE, 0, 2, 4)]))
    add_case(file, "matmul/of_heads", dict(a=(2, 3, 8), b=(2, 5, 8)), torch.matmul,
             views=dict(a=[(SPLIT_LAST, 2), (TRANSPOSE, 1, 2)], b=[(SPLIT_LAST, 2), (TRANSPOSE, 1, 2)] + flip))


def write_linear_options(file):
    def case(name, x, out, bias=True, **options):
        operands = dict(x=x, weight=(out, options.pop("width", x[-1])), **(dict(bias=(out,)) if bias else {}))
        add_case(file, "linear/" + name, operands, F.linear, **options)

    case("no_bias", (2, 3, 5), 4, bias=False)
    case("ones", (1, 1, 1), 1)
    case("ones_no_bias", (1, 1), 1, bias=False)
    case("to_one", (3, 5), 1)
    case("from_one", (3, 1), 5)
    case("one_row", (1, 7), 3)
    case("odd", (3, 5, 7), 9)
    case("rank_four", (2, 1, 3, 5), 2, bias=False)
    case("of_a_slice", (2, 3, 7), 4, width=5, views=dict(x=[(SLICE, 2, 1, 5)]))
    case("many_blocks", (3, 129, 1), 1)  # weight gradients are sums over blocks of sequences

    def embed(name, rows, width, ids, **options):
        ids = torch.tensor(ids)
        add_case(file, "embedding/" + name, dict(table=(rows, width)), lambda table: F.embedding(ids, table), ids=ids,
                 **options)

    embed("one", 1, 1, [0])
    embed("one_row", 1, 5, [[0, 0, 0]])
    embed("one_column", 7, 1, [[6, 0, 3], [3, 3, 1]])
    embed("odd", 5, 3, [[4], [0], [4]])
    embed("flat", 9, 7, [8, 8, 1, 0, 2])
    embed("all_alike", 3, 3, [[1] * 11])
    embed("positions", 9, 3, [[7, 2, 5], [0, 0, 1]], positions=1)
    ids = torch.tensor([3, 0, 1])  # shared by two sequences
    add_case(file, "embedding/shared_positions", dict(table=(4, 5)), lambda t: F.embedding(ids.expand(2, 3), t), ids=ids,
             positions=1, batch=2)


def write_masked_fill(file):
    shapes = dict(row=((3, 4, 5), (4, 5)), same=((3, 5), (3, 5)), last=((2, 3, 5), (5,)), column=((2, 3, 5), (3, 1)),
                  batch=((2, 3, 5), (2, 1, 1)), one=((3, 5), (1,)), ones=((1, 1), (1, 1)), odd=((3, 7, 5), (3, 1, 5)))
    for name, (x, mask) in shapes.items():
        for value in (-2.0, -torch.inf):
            path = f"masked_fill/{name}{'_infinity' if value < -2 else ''}"
            start(path + "/mask")
            hidden = torch.rand(mask) < 0.5
            add_case(file, path, dict(x=x), lambda x: x.masked_fill(hidden, value), mask=hidden.to(torch.uint8),
                     value=value)
    for name, hidden in dict(everything=torch.ones(3, 5), nothing=torch.zeros(3, 5)).items():
        add_case(file, "masked_fill/" + name, dict(x=(3, 5)), lambda x: x.masked_fill(hidden.bool(), 7.0),
                 mask=hidden.to(torch.uint8), value=7.0)

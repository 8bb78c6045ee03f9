"""Cross-entropy, alone and with the head of a model: smoothing, ignored targets, divisors."""

import torch
import torch.nn.functional as F

from common import SLICE, add_case, save_case, variable


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


def write_loss_options(file):
    def case(name, rows, classes, targets, smoothing=0.0, ignore=-100, divisor=0, spread=3.0):
        """`rows`: all axes of the logits but the last. Once for either operation."""
        targets = torch.tensor(targets)
        count = int((targets != ignore).sum())

        def loss(logits):
            logits = logits.reshape(-1, classes)
            if divisor == 0 and count > 0:
                return F.cross_entropy(logits, targets, ignore_index=ignore, label_smoothing=smoothing)
            # With no target at all PyTorch's mean is NaN; here it is 0, and so are the gradients.
            total = F.cross_entropy(logits, targets, ignore_index=ignore, label_smoothing=smoothing, reduction="sum")
            return total / (divisor or 1)

        options = dict(targets=targets, smoothing=smoothing, ignore=ignore, divisor=divisor)
        add_case(file, "cross_entropy/" + name, dict(logits=(*rows, classes)), loss, spread, **options)
        add_case(file, "linear_cross_entropy/" + name, dict(x=(*rows, 3), weight=(classes, 3)),
                 lambda x, weight: loss(F.linear(x, weight)), spread, **options)

    for name, smoothing in dict(plain=0.0, smoothed=0.1, uniform=1.0).items():
        case("ones_" + name, (1,), 1, [0], smoothing)
        case("one_row_" + name, (1,), 7, [6], smoothing)
        case("one_class_" + name, (3,), 1, [0, -100, 0], smoothing)
        case("odd_" + name, (3, 5), 7, [0, 6, 3, 3, -100, 1, 2, 5, 4, -100, 0, 0, 1, 6, 2], smoothing)
        case("all_ignored_" + name, (3,), 5, [-100] * 3, smoothing)
        case("none_ignored_" + name, (5,), 3, [2, 0, 1, 1, 2], smoothing)
        case("divisor_" + name, (2, 3), 5, [1, -100, 4, 0, 0, 2], smoothing, divisor=11)
        case("divisor_all_ignored_" + name, (3,), 5, [-100] * 3, smoothing, divisor=7)
        case("other_ignore_" + name, (5,), 5, [1, 3, 3, 0, 4], smoothing, ignore=3)
        case("sharp_" + name, (5,), 5, [1, -100, 4, 0, 0], smoothing, spread=20.0)
    # A class that does not contribute.
    logits = torch.linspace(-2, 2, 15).view(3, 5)
    logits[0, 3] = logits[2, 0] = -torch.inf
    targets = torch.tensor([0, 4, 2])
    add_case(file, "cross_entropy/a_class_without_part", dict(logits=logits), lambda x: F.cross_entropy(x, targets),
             targets=targets, smoothing=0.0)
    targets = torch.tensor([2, 0, 1])
    add_case(file, "cross_entropy/of_a_slice", dict(logits=(3, 7)), lambda x: F.cross_entropy(x, targets),
             targets=targets, smoothing=0.0, views=dict(logits=[(SLICE, 1, 2, 3)]))
    add_case(file, "linear_cross_entropy/of_a_slice", dict(x=(3, 7), weight=(5, 4)),
             lambda x, weight: F.cross_entropy(F.linear(x, weight), targets), targets=targets, smoothing=0.0,
             views=dict(x=[(SLICE, 1, 2, 4)]))

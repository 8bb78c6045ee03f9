"""Twenty updates of each optimiser, and learning rates of each schedule."""

import torch
from torch.optim import lr_scheduler

from common import group_in, save, start, variable


def history_of(optimizer, weight, bias, rates, limit=0.0):
    """Updates of a weight and a bias with random gradients of very different sizes, clipped to a global norm. PyTorch's
    clip_grad_norm_ adds 1e-6 to the norm, so the factor is written out."""
    history = dict(rates=[], weight_gradients=[], bias_gradients=[], weights=[], biases=[])
    scales = []
    for step, rate in enumerate(rates):
        for parameters in optimizer.param_groups:
            parameters["lr"] = rate
        weight.grad, bias.grad = torch.randn(weight.shape) * 10.0 ** (step % 3 - 2), torch.randn(bias.shape)
        history["rates"].append(torch.tensor(rate))
        history["weight_gradients"].append(weight.grad)
        history["bias_gradients"].append(bias.grad)
        norm = torch.cat([weight.grad.flatten(), bias.grad]).norm()
        scale = min(1.0, limit / float(norm)) if limit > 0 else 1.0
        scales.append(torch.tensor(scale))
        weight.grad, bias.grad = weight.grad * scale, bias.grad * scale
        optimizer.step()
        history["weights"].append(weight.detach().clone())
        history["biases"].append(bias.detach().clone())
    if limit > 0:
        history["scales"] = scales
    return {name: torch.stack(values) for name, values in history.items()}


def groups(weight, bias, decay):
    """A weight that decays and a bias that does not."""
    return [dict(params=[weight], weight_decay=decay), dict(params=[bias], weight_decay=0.0)]


def write_adamw(file):
    weight, bias = variable(3, 4), variable(5)
    group = group_in(file, "adamw/plain")
    save(group, weight=weight, bias=bias, beta1=0.9, beta2=0.99, eps=1e-8, decay=0.1)
    optimizer = torch.optim.AdamW(groups(weight, bias, 0.1), lr=1.0, betas=(0.9, 0.99), eps=1e-8)
    save(group, **history_of(optimizer, weight, bias, [0.01 * (20 - step) / 20 for step in range(20)]))


def write_optimizers(file):
    def adamw(name, shape, betas=(0.9, 0.999), eps=1e-8, decay=0.0, rate=0.01, limit=0.0):
        start("adamw/" + name)
        weight, bias = variable(*shape), variable(shape[0])
        group = group_in(file, "adamw/" + name)
        save(group, weight=weight, bias=bias, beta1=betas[0], beta2=betas[1], eps=eps, decay=decay, limit=limit)
        optimizer = torch.optim.AdamW(groups(weight, bias, decay), lr=1.0, betas=betas, eps=eps)
        save(group, **history_of(optimizer, weight, bias, [rate] * 20, limit))

    adamw("ones", (1, 1), decay=0.3)
    adamw("no_decay", (3, 5))
    adamw("no_momentum", (3, 5), betas=(0.0, 0.0), decay=0.1)
    adamw("large_eps", (5, 3), eps=0.1, decay=0.01)
    adamw("large_rate", (5, 3), decay=0.5, rate=0.7)
    adamw("clipped", (3, 5), betas=(0.9, 0.95), decay=0.1, limit=1.0)

    def sgd(name, shape, momentum, decay=0.0, limit=0.0):
        start("sgd/" + name)
        weight, bias = variable(*shape), variable(shape[0])
        group = group_in(file, "sgd/" + name)
        save(group, weight=weight, bias=bias, momentum=momentum, decay=decay, limit=limit)
        optimizer = torch.optim.SGD(groups(weight, bias, decay), lr=1.0, momentum=momentum)
        save(group, **history_of(optimizer, weight, bias, [0.05 / (1 + step) for step in range(20)], limit))

    sgd("plain", (3, 5), 0.0)
    sgd("ones", (1, 1), 0.9, 0.1)
    sgd("momentum_and_decay", (3, 5), 0.9, 0.1)
    sgd("clipped", (5, 3), 0.5, 0.1, limit=1.0)


def follow(scheduler, count):
    rates = []
    for _ in range(count):
        rates.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.optimizer.step()
        scheduler.step()
    return rates


def schedule(kind, peak, floor, warmup, total, decay=0, steps=None):
    """Rates of steps 0, 1, ..., put together from PyTorch's schedulers."""
    def optimizer():
        return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=peak)

    steps = steps or total
    rates = []
    if warmup > 1:
        rates = follow(lr_scheduler.LinearLR(optimizer(), 1 / warmup, 1.0, warmup - 1), warmup)
    elif warmup == 1:
        rates = [peak]
    if kind == "warmup_stable_decay":
        rates += [peak] * (total - decay - warmup)
    fall = total - len(rates)
    if kind == "constant":
        rates += follow(lr_scheduler.ConstantLR(optimizer(), 1.0, 1), steps - len(rates))
    elif kind == "cosine":
        rates += follow(lr_scheduler.CosineAnnealingLR(optimizer(), fall, floor), fall)
    else:
        rates += follow(lr_scheduler.LinearLR(optimizer(), 1.0, floor / peak, fall), fall)
    return (rates + [floor] * steps)[:steps]


def write_schedules(file):
    for kind in ("constant", "linear", "cosine", "warmup_stable_decay"):
        for warmup in (0, 1, 5):
            numbers = dict(peak=3e-3, floor=2e-4, warmup=warmup, total=23, decay=7)
            rates = schedule(kind, **numbers, steps=27)
            save(group_in(file, f"schedules/{kind}_{warmup}"), rates=torch.tensor(rates), **numbers)

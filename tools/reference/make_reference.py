#!/usr/bin/python3
"""Writes the reference values that handgrad's tests compare with, made by PyTorch in float64: all of them, at once.

Usage: make_reference.py [FOLDER]      (default: tests/data beside this repository's tools)

Needs Debian's python3-torch and python3-h5py. The files are committed: neither building nor testing needs this script.
It always writes the same bytes. common.py describes the layout of a case; the files of the folder are

    operations.h5   every operation but the two below, in groups of its name
    attention.h5    both forms of attention: sizes, and masks of every shape
    losses.h5       cross-entropy, alone and with the head
    optimizers.h5   twenty updates of each optimiser, schedules
    NAME.h5         a whole model: parameters, logits, loss, gradients, and ten steps of training
"""

import os
import sys

from common import create, torch  # first of all: it says which kernels PyTorch is to take

import algebra
import attention
import functions
import losses
import optimizers
import rotary
from small_models import write_models


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..", "tests", "data")
    os.makedirs(folder, exist_ok=True)
    files = {name: create(folder, name + ".h5") for name in ("operations", "attention", "losses", "optimizers")}
    # These draw from one stream of random numbers, one after the other. All other cases have seeds of their own.
    torch.manual_seed(2026)
    for write, file in ((attention.write_attention, "attention"), (rotary.write_rope, "operations"),
                        (functions.write_norms, "operations"), (losses.write_losses, "losses"),
                        (functions.write_elementwise, "operations"), (algebra.write_linear, "operations"),
                        (optimizers.write_adamw, "optimizers")):
        write(files[file])
    for write in (attention.write_attention_sizes, attention.write_masks):
        write(files["attention"])
    losses.write_loss_options(files["losses"])
    for write in (optimizers.write_optimizers, optimizers.write_schedules):
        write(files["optimizers"])
    for write in (algebra.write_broadcast, algebra.write_reductions, algebra.write_views, algebra.write_matmul,
                  algebra.write_linear_options, algebra.write_masked_fill, functions.write_activations,
                  functions.write_softmax, functions.write_dropout, functions.write_norm_options,
                  rotary.write_rope_options):
        write(files["operations"])
    for file in files.values():
        file.close()
    write_models(folder)


if __name__ == "__main__":
    main()

"""handgrad's random numbers, written again from their definitions: dropout masks, and the order of training windows."""

import torch

DROPOUT, DATA_ORDER = 2, 3  # streams
WORD = 0xFFFFFFFF


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011): four words of 32 bits."""
    a, b, c, d = counter
    k, l = key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & WORD, (p >> 32) ^ d ^ l, p & WORD
        k, l = (k + 0x9E3779B9) & WORD, (l + 0xBB67AE85) & WORD
    return a, b, c, d


# Known answers of Random123.
assert philox((0,) * 4, (0,) * 2) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
assert philox((WORD,) * 4, (WORD,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)


def words(seed, stream, substream, counter):
    return philox((counter & WORD, counter >> 32, stream, substream), (seed & WORD, seed >> 32))


def bits(seed, stream, substream, counter):
    first, second = words(seed, stream, substream, counter)[:2]
    return first << 32 | second


def dropout_mask(shape, probability, seed, site, first_row):
    """1 / (1 - p) for elements that are kept, else 0. Rows are counted over all axes but the last."""
    columns = shape[-1]
    rows = torch.Size(shape).numel() // columns
    groups = (columns + 3) // 4  # a block of Philox serves four columns
    threshold = int(probability * 2 ** 32)
    kept = [[words(seed, DROPOUT, site, (first_row + r) * groups + c // 4)[c % 4] >= threshold for c in range(columns)]
            for r in range(rows)]
    return torch.tensor(kept).reshape(shape) / (1 - probability)


def dropout(x, probability, seed, site, first_row):
    return x * dropout_mask(x.shape, probability, seed, site, first_row) if probability > 0 else x


def permuted(i, size, seed, epoch):
    """Feistel network of six rounds over the next power of four, walked until it lands below `size`."""
    half = (((size - 1).bit_length()) + 1) // 2
    mask = (1 << half) - 1
    while True:
        left, right = i >> half, i & mask
        for r in range(6):
            turned = bits(seed, DATA_ORDER, epoch & WORD, right | r << 32 | epoch >> 32 << 35)
            left, right = right, left ^ turned & mask
        i = left << half | right
        if i < size:
            return i


def window_start(sample, n_tokens, context, order, seed):
    """Index of the first token of a training sample."""
    if order == "random":
        return bits(seed, DATA_ORDER, 0, sample) * (n_tokens - context) >> 64
    windows = (n_tokens - 1) // context
    return permuted(sample % windows, windows, seed, sample // windows) * context

"""What all makers of reference values share: PyTorch in float64, and how a case is laid out in a file.

A case is a group OPERATION/NAME: operands under their names, y, a random dy, d<operand> = the gradient of <y, dy> with
respect to it, and the options as attributes. view_<operand> says how the operation reads an operand: rows of
(kind, a, b, c), applied in turn (VIEWS).
"""

import ctypes
import os
import zlib

# Sums in one order on every processor, so that the same files come out bit for bit: kernels that all x86-64 have had
# for a decade. Read when PyTorch is loaded.
os.environ["OPENBLAS_CORETYPE"] = "Sandybridge"
os.environ["ATEN_CPU_CAPABILITY"] = "avx2"

import h5py  # noqa: E402
import torch  # noqa: E402

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

TRANSPOSE, SLICE, SPLIT_LAST, RESHAPE = range(4)
VIEWS = {
    TRANSPOSE: lambda x, a, b, _: x.transpose(a, b),
    SLICE: lambda x, axis, begin, count: x.narrow(axis, begin, count),
    SPLIT_LAST: lambda x, parts, _, __: x.unflatten(-1, (parts, x.shape[-1] // parts)),
    RESHAPE: lambda x, *shape: x.view(shape),
}


# Datasets have no attributes, and room for them would be a third of the file.
_no_room_for_attributes = ctypes.CDLL("libhdf5_serial.so.103").H5Pset_dset_no_attrs_hint
_no_room_for_attributes.argtypes = ctypes.c_int64, ctypes.c_bool


def _settings(kind):
    """Of a file, group or dataset that does not keep the time when it was made: the bytes are the same every time."""
    settings = h5py.h5p.create(kind)
    settings.set_obj_track_times(False)
    return settings


def create(folder, name):
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18)  # its groups are small
    path = os.path.join(folder, name).encode()
    return h5py.File(h5py.h5f.create(path, h5py.h5f.ACC_TRUNC, _settings(h5py.h5p.FILE_CREATE), access))


def group_in(group, path):
    """The group at a path; it is made, and those on its way, if need be."""
    for name in path.split("/"):
        if name not in group:
            h5py.h5g.create(group.id, name.encode(), gcpl=_settings(h5py.h5p.GROUP_CREATE))
        group = group[name]
    return group


def put(group, path, array):
    """A tensor as a dataset."""
    array = array.detach().contiguous().numpy()
    folder, _, name = path.rpartition("/")
    settings = _settings(h5py.h5p.DATASET_CREATE)
    assert _no_room_for_attributes(settings.id, True) >= 0
    space = h5py.h5s.create_simple(array.shape) if array.shape else h5py.h5s.create(h5py.h5s.SCALAR)
    dataset = h5py.h5d.create((group_in(group, folder) if folder else group).id, name.encode(),
                              h5py.h5t.py_create(array.dtype), space, settings)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, array)


def variable(*shape, spread=1.0):
    return (spread * torch.randn(shape)).requires_grad_()


def save(group, **arrays):
    """Tensors as datasets, numbers as attributes."""
    for name, array in arrays.items():
        if isinstance(array, torch.Tensor):
            put(group, name, array)
        else:
            group.attrs[name] = array


def save_case(file, path, y, inputs, **others):
    """The inputs, y, a random dy, and the gradient of every input."""
    dy = torch.randn(y.shape)
    gradients = torch.autograd.grad(y, list(inputs.values()), dy)
    save(group_in(file, path), y=y, dy=dy, **inputs, **others,
         **{"d" + name: g for name, g in zip(inputs, gradients)})


def start(path):
    """Random numbers of the case's own: adding one changes no other."""
    torch.manual_seed(zlib.crc32(path.encode()))


def add_case(file, path, operands, f, spread=1.0, views=None, **options):
    """f of operands given by shape or as tensors, with a seed of its own."""
    start(path)
    inputs = {name: variable(*value, spread=spread) if isinstance(value, tuple) else value.clone().requires_grad_()
              for name, value in operands.items()}
    seen = dict(inputs)
    for name, steps in (views or {}).items():
        rows = [(list(step) + [0, 0, 0])[:4] for step in steps]
        for kind, *numbers in rows:
            seen[name] = VIEWS[kind](seen[name], *numbers)
        if rows:
            options["view_" + name] = torch.tensor(rows)
    save_case(file, path, f(*seen.values()), inputs, **options)

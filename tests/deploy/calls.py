"""A process of torch without nsc: python calls.py CALLS LIBRARY...

It loads libraries of deployed sources, and calls operators as a file says that torch.save wrote: the name of
each, its arguments, and its results or what its error says. It prints what differs.
"""

import sys

import torch


def are_same(a, b):
    bits = [tensor.flatten().view(torch.uint8) for tensor in (a, b)]
    strides = [tensor.stride() if tensor.numel() else None for tensor in (a, b)]
    return a.dtype == b.dtype and a.shape == b.shape and strides[0] == strides[1] and torch.equal(*bits)


calls, *libraries = sys.argv[1:]
for library in libraries:
    torch.ops.load_library(library)
for name, arguments, expected in torch.load(calls):
    try:
        results = getattr(torch.ops.nsc, name)(*arguments)
    except RuntimeError as error:
        results = str(error)
    if isinstance(expected, str) or isinstance(results, str):
        is_same = isinstance(results, str) and expected in results
    else:
        pairs = zip((results,) if len(expected) == 1 else results, expected, strict=True)
        is_same = all(are_same(*pair) for pair in pairs)
    if not is_same:
        print(name, arguments, "gives", results, "in the place of", expected)
assert "nsc" not in sys.modules

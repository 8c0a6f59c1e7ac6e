"""C programs that include headers: libraries whose functions have one signature for all forms and types."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nsc.contract.exact import C_TYPES

TRACER = Path(__file__).with_name("tracer.h")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror")
FORMS = {
    "one": "(x, values)",
    "indices": "(x, values, indices)",
    "rows": "(x, count, stride, values)",
    "rows_indices": "(x, count, stride, values, indices)",
    "columns": "(x, count, stride, values, values_stride)",
    "columns_indices": "(x, count, stride, values, values_stride, indices)",
}
# Of every form, as C calls it and as ctypes does.
_PARAMETERS = (
    "const {0} *x, size_t count, size_t stride, {0} *values, size_t values_stride, uint32_t *indices"
)
_P, _Z = ctypes.c_void_p, ctypes.c_size_t
_TYPES = [_P, _Z, _Z, _P, _Z, _P]


def every(headers, types, forms=tuple(FORMS)):
    """Return the name of the header, the form and the type of every function."""
    return [(name, form, type_) for name in headers for form in forms for type_ in types]


def called(name, form, type_):
    """Return the name of a function of a header."""
    return f"{name}_{type_}" if form == "one" else f"{name}_{form}_{type_}"


def source(functions):
    """Return a program that has each function of some headers, under the name f_NAME_FORM_TYPE."""
    lines = [f'#include "{name}.h"' for name in dict.fromkeys(name for name, *_ in functions)]
    for name, form, type_ in functions:
        signature = f"void f_{name}_{form}_{type_}({_PARAMETERS.format(C_TYPES[type_].type)})"
        lines += [
            f"{signature};",
            f"{signature} {{",
            "    (void)count, (void)stride, (void)values_stride, (void)indices;",
            f"    {called(name, form, type_)}{FORMS[form]};",
            "}",
        ]
    return "\n".join(lines) + "\n"


def lanes(type_):
    """Return how many samples a block of straight-line code has: a cache line of values."""
    return 512 // C_TYPES[type_].bits


def counts(type_):
    """Return numbers of samples of a batch: none, less than a block, whole blocks, a rest."""
    return sorted({0, 1, lanes(type_) - 1, lanes(type_), lanes(type_) + 1, 1024})


def source_of_counts(functions, n):
    """Return a program that calls each function on batches of `counts`, which a compiler sees, of n values.

    `flatten` inlines the calls, as compilers do with the only call of a function.
    """
    lines = [f'#include "{name}.h"' for name in dict.fromkeys(name for name, *_ in functions)]
    for name, form, type_ in functions:
        for count in counts(type_):
            c = C_TYPES[type_].type
            signature = f"void f_{name}_{form}_{type_}_{count}(const {c} *x, {c} *values, uint32_t *indices)"
            stride = count if form.startswith("columns") else n
            lines += [
                f"__attribute__((flatten)) {signature};",
                f"{signature} {{",
                f"    const size_t count = {count}, stride = {stride}, values_stride = {stride};",
                "    (void)count, (void)stride, (void)values_stride, (void)indices;",
                f"    {called(name, form, type_)}{FORMS[form]};",
                "}",
            ]
    return "\n".join(lines) + "\n"


def run(*command):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, f"{command}: {result.stderr[:4000]}"
    return result.stdout


def build(compiler, standard, *arguments):
    """Compile C or C++ with all warnings as errors; skip the test if gcc or clang is not installed."""
    is_cpp = standard.startswith("c++")
    run(
        *_command(compiler, is_cpp), f"-std={standard}", *WARNINGS, "-x", "c++" if is_cpp else "c", *arguments
    )


def _command(compiler, is_cpp):
    if shutil.which(compiler):
        return [compiler]
    if compiler == "clang" and importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "c++" if is_cpp else "cc"]
    return pytest.skip(f"{compiler} is not installed")


def write(folder, headers, program, name="program.c"):
    for header, text in headers.items():
        (folder / f"{header}.h").write_text(text, encoding="utf-8")
    path = folder / name
    path.write_text(program, encoding="utf-8")
    return path


@dataclass(frozen=True)
class Functions:
    """A library of `source`.

    Attributes:
        library: loaded.
        outputs: of each header, the ranks of its results.
    """

    library: ctypes.CDLL
    outputs: dict[str, tuple[int, ...]]

    def call(self, name, form, x, **options):
        """Return values and indices of samples in the rows of x, laid out as the form wants them."""
        k, type_ = len(self.outputs[name]), x.dtype.name
        function = self.library[f"f_{name}_{form}_{type_}"]
        function.argtypes, function.restype = _TYPES, None
        count = len(x)
        is_columns = form.startswith("columns")
        given = np.ascontiguousarray(x.T if is_columns else x)
        gap = options.get("gap", 0)
        if gap:
            given = np.pad(given, ((0, 0), (0, gap)))
        shape = (k, count + gap) if is_columns else (count, k)
        values = given if options.get("in_place") else np.zeros(shape, x.dtype)
        indices = np.full(shape, 99, np.uint32)
        samples = range(count) if form in ("one", "indices") else [0]
        for s in samples:
            function(
                given[s:].ctypes.data,
                count,
                given.shape[1],
                values[s:].ctypes.data,
                values.shape[1],
                indices[s:].ctypes.data,
            )
        assert form.endswith("indices") or (indices == 99).all()
        if is_columns:
            return values[:, :count].T, indices[:, :count].T
        return values.reshape(-1)[: count * k].reshape(count, k), indices


def load(path, outputs):
    return Functions(ctypes.CDLL(str(path)), outputs)

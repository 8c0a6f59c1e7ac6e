"""Catches C headers that sort wrongly, that a compiler warns of, or that branch on a value."""

from __future__ import annotations

import ctypes
import itertools
import platform
import re
import shutil
from functools import cache

import numpy as np
import pytest
from programs import FORMS, TRACER, build, every, lanes, load, run, source, source_of_counts, write

import nsc
from nsc.compiler.emit import compile_emitted, plan
from nsc.compiler.request import Request
from nsc.compiler.selection import median, ranks, top_k
from nsc.contract.exact import C_TYPES
from nsc.errors import LoweringError, VerificationError

SLOW = pytest.mark.slow("C compilers build headers")
MORE = pytest.mark.nightly("C compilers take every level of optimisation")
TYPES = tuple(C_TYPES)
# Of each width of an item one: a word of either size, a pair, with floats and without.
FEW = ("uint8", "int32", "float32", "int64")
INTEGERS = tuple(name for name, type_ in C_TYPES.items() if not type_.is_float)
# Name to network, n and what is selected.
NETWORKS = {
    "one": (("best", 1), None),
    "five": (("best", 5), None),
    "middle": (("best", 9), median()),
    "some": (("bitonic", 6), ranks(5, 0, 2)),
    "table": (("odd_even", 39), None),
    "table_top": (("odd_even", 12), top_k(3)),
}
# Those whose object code is read: wide ones are not inlined into loops.
TIMED = {"five": (("best", 5), None), "wide": (("best", 16), None), "table_five": (("best", 5), None)}
SMALL = {"two": (("bitonic", 2), None), "four": (("best", 4), None), "table_three": (("best", 3), None)}
# One with straight-line code and one with a table have every type.
SORTED = {name: TYPES if name in ("some", "table_top") else FEW for name in NETWORKS}
# The functions that are traced, and for how many samples: batches of a block and a rest, or of a rest.
TRACED = [
    *((*function, 1) for function in every(("five",), INTEGERS, ("one", "indices"))),
    *((*function, 1) for function in every(("wide",), INTEGERS[::2], ("one", "indices"))),
    *(("five", form, "int32", 17) for form in ("rows", "columns_indices")),
    *(("five", form, "int64", 9) for form in ("rows_indices", "columns")),
    *(("wide", form, "uint64", 2) for form in ("rows", "columns_indices")),
    *(("table_five", form, type_, 1) for form in ("one", "indices") for type_ in ("int32", "int64")),
]
BATCHES = tuple(form for form in FORMS if form not in ("one", "indices"))
# These would get straight-line code.
FORCED = ("table_top", "table_three", "table_five")


@cache
def header(name, types=TYPES):
    network, select = (NETWORKS | TIMED | SMALL)[name]
    with pytest.MonkeyPatch.context() as patch:
        if name in FORCED:
            patch.setattr(plan, "STRAIGHT_LINE", 0)
        request = Request(*network, select=select, language="c", dtypes=types, name=name)
        text = compile_emitted(request).text
    assert ("uint16_t " in text and f"{name}_comparators[]" in text) == name.startswith("table")
    return text


def headers(*names, types=TYPES):
    return {name: header(name, types) for name in names}


def outputs(name):
    (_, n), select = NETWORKS[name]
    return tuple(range(n)) if select is None else tuple(select.outputs(n).values())


@pytest.fixture(scope="session")
def functions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("headers")
    texts = {name: header(name, types) for name, types in SORTED.items()}
    functions = [each for name, types in SORTED.items() for each in every([name], types)]
    program = write(folder, texts, source(functions))
    library = folder / "program.so"
    build("gcc", "c11", "-O0", "-fPIC", "-shared", program, "-o", library)
    return load(library, {name: outputs(name) for name in NETWORKS})


def hostile(type_, shape):
    """Return numbers of which many are equal, extreme, infinite, zero or NaN, of either sign."""
    x = np.random.randint(0, 7, shape).astype(type_)
    if C_TYPES[type_].is_float:
        special = np.array([0.0, np.inf, np.nan, np.finfo(type_).smallest_subnormal, 1, 1e30], type_)
        special = np.concatenate([special, np.copysign(special, -1)])
    else:
        special = [np.iinfo(type_).max, np.iinfo(type_).min, np.iinfo(type_).max - 1]
    where = np.random.random(shape) < 0.5
    x[where] = np.random.choice(np.array(special, type_), where.sum())
    return x


def signs(x):
    """Return numbers with their signs, so that -0 is not 0; NaN has none."""
    return np.where(np.isnan(x), x, np.copysign(1, x)) if x.dtype.kind == "f" else x


@SLOW
@pytest.mark.parametrize("name", NETWORKS)
def test_every_form_is_numpys_sort(name, functions):
    n, wanted = NETWORKS[name][0][1], list(functions.outputs[name])
    for form, type_ in itertools.product(FORMS, SORTED[name]):
        for count in (0, 3, lanes(type_) + 2):
            x = hostile(type_, (count, n))
            values, indices = functions.call(name, form, x)
            if form.endswith("indices"):
                order = x.argsort(axis=1, kind="stable")[:, wanted]
                assert (indices == order).all()
                expected = np.take_along_axis(x, order, 1)
            else:
                expected = np.sort(x, axis=1)
                if x.dtype.kind == "f":  # -0 first
                    expected = np.take_along_axis(x, np.lexsort((np.copysign(1, x), x)), 1)
                    expected[np.isnan(expected)] = np.nan
                expected = expected[:, wanted]
            np.testing.assert_array_equal(values, expected)
            np.testing.assert_array_equal(signs(values), signs(expected))


@SLOW
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["five", "table"])
def test_results_may_stand_where_the_values_were(name, form, functions):
    for type_ in ("uint8", "float32", "int64"):
        x = hostile(type_, (67, NETWORKS[name][0][1]))
        expected = functions.call(name, form, x)
        for result, other in zip(functions.call(name, form, x, in_place=True), expected, strict=True):
            np.testing.assert_array_equal(result, other)


@SLOW
@pytest.mark.parametrize("name", ["middle", "some", "table_top"])
def test_samples_may_have_gaps(name, functions):
    x = hostile("int32", (21, NETWORKS[name][0][1]))
    for form in ("rows", "rows_indices", "columns", "columns_indices"):
        expected = functions.call(name, form, x)
        for result, other in zip(functions.call(name, form, x, gap=3), expected, strict=True):
            np.testing.assert_array_equal(result, other)


@SLOW
@pytest.mark.parametrize(
    ("compiler", "standard"),
    [("gcc", "c17"), ("gcc", "c++11"), ("clang", "c++20")],
)
def test_compilers_take_every_text_without_a_warning(compiler, standard, tmp_path):
    names = ("one", "some", "table")
    program = write(tmp_path, headers(*names, types=FEW), source(every(names, FEW)))
    build(compiler, standard, "-O0", "-c", program, "-o", tmp_path / "p.o")


@SLOW
@pytest.mark.parametrize(
    ("compiler", "standard", "level"),
    [
        ("gcc", "c11", "-O2"),
        pytest.param("clang", "c++11", "-O3", marks=MORE),
        pytest.param("gcc", "c++11", "-O3", marks=MORE),
    ],
)
def test_a_number_of_samples_that_a_compiler_sees_is_no_reason_to_warn(compiler, standard, level, tmp_path):
    """The batches of a table do not depend on the type."""
    functions = every(("two",), FEW, BATCHES), every(("table_three",), ("float32",), BATCHES)
    text = "".join(source_of_counts(some, n) for some, n in zip(functions, (2, 3), strict=True))
    program = write(tmp_path, headers("two", "table_three", types=FEW), text)
    build(compiler, standard, level, "-c", program, "-o", tmp_path / "p.o")


@SLOW
@pytest.mark.parametrize("level", ["-O1", pytest.param("-O3", marks=MORE)])
def test_a_header_needs_no_library(level, tmp_path):
    text = source(every(("five", "table"), ("int32", "float64")))
    program = write(tmp_path, headers("five", "table", types=("int32", "float64")), text)
    build("gcc", "c11", level, "-ffreestanding", "-c", program, "-o", tmp_path / "p.o")
    # Copies of blocks, which compilers call without any library too.
    undefined = {line.split()[-1] for line in run("nm", "-u", tmp_path / "p.o").splitlines()}
    assert undefined <= {"memcpy", "memmove", "memset"}


# Calls a function with arrays of exact size.
_CHECK = """
    {{
        {c} *x = ({c} *)malloc({inputs} * sizeof *x), *values = ({c} *)malloc({outputs} * sizeof *values);
        uint32_t *indices = (uint32_t *)malloc({outputs} * sizeof *indices);
        for (size_t k = 0; k < {inputs} * sizeof *x; ++k) ((unsigned char *)x)[k] = (unsigned char)(k * 77);
        {call};
        free(x), free(values), free(indices);
    }}"""


@SLOW
def test_sanitizers_find_nothing(tmp_path):
    names = "five", "middle", "table_top"
    types = ("int8", "float64")
    functions, checks = every(names, types), []
    for name, form, type_ in functions:
        n, k = NETWORKS[name][0][1], len(outputs(name))
        count = 1 if form in ("one", "indices") else lanes(type_) + 1
        stride, values_stride = (count, count) if form.startswith("columns") else (n, k)
        call = f"f_{name}_{form}_{type_}(x, {count}, {stride}, values, {values_stride}, indices)"
        checks.append(_CHECK.format(c=C_TYPES[type_].type, inputs=n * count, outputs=k * count, call=call))
    text = f"#include <stdlib.h>\n{source(functions)}int main(void) {{{''.join(checks)}\n}}\n"
    program = write(tmp_path, headers(*names, types=types), text)
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1"]
    build("gcc", "c11", "-O0", *flags, program, "-o", tmp_path / "p")
    run(tmp_path / "p")


def test_the_functions_are_constant_expressions_in_cpp20(tmp_path):
    text = """
#include "five.h"
#include "table.h"
constexpr bool sorts() {
    const int32_t x[5] = {3, -1, 4, 1, -5};
    int32_t y[5] = {};
    uint32_t places[5] = {};
    five_int32(x, y);
    if (y[0] != -5 || y[1] != -1 || y[4] != 4) return false;
    five_indices_int32(x, y, places);
    float z[39] = {}, sorted[39] = {};
    z[3] = -2;
    table_float32(z, sorted);
    return places[0] == 4 && places[4] == 2 && sorted[0] == -2 && sorted[1] == 0;
}
static_assert(sorts());
"""
    program = write(tmp_path, headers("five", "table"), text, "p.cpp")
    build("g++", "c++20", "-fsyntax-only", program)


_ON_X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads and traces the code of x86-64")


@_ON_X86
@pytest.mark.parametrize("type_", ["float32", "uint8"])
def test_batches_of_columns_run_in_vectors(type_, tmp_path):
    """At -O3 gcc compares samples of a block in registers, each of the 60 comparators of 16 wires."""
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed")
    program = write(tmp_path, {"wide": header("wide", (type_,))}, source([("wide", "columns", type_)]))
    build("gcc", "c11", "-O3", "-c", program, "-o", tmp_path / "p.o")
    code = run("objdump", "-d", "--no-show-raw-insn", tmp_path / "p.o")
    assert len(re.findall(r"\t(?:pcmpgt[bd]|pminub) ", code)) >= 60


@SLOW
@_ON_X86
@pytest.mark.parametrize(
    ("compiler", "level"),
    [
        ("gcc", "-O2"),
        ("clang", "-O2"),
        pytest.param("gcc", "-O1", marks=MORE),
        pytest.param("gcc", "-O3", marks=MORE),
    ],
)
def test_integers_of_any_value_run_the_same_instructions(compiler, level, tmp_path):
    """Batches too: the processor runs them a step at a time."""
    check_traces(compiler, level, tmp_path)


def check_traces(compiler, level, folder):
    text = '#include "tracer.h"\n' + source([function[:3] for function in TRACED])
    program = write(folder, headers(*TIMED, types=INTEGERS), text)
    flags = [level, "-mno-red-zone", "-fPIC", "-shared", f"-I{TRACER.parent}"]
    build(compiler, "c11", *flags, program, "-o", folder / "p.so")
    library = ctypes.CDLL(str(folder / "p.so"))
    for name, form, type_, count in TRACED:
        assert len(traces(library, name, form, type_, count)) == 1, (name, form, type_)


def traces(library, name, form, type_, count):
    """Return the traces of a function for values in reverse, equal, and random."""
    library.trace.restype = ctypes.c_uint64
    n = TIMED[name][0][1]
    function = library[f"f_{name}_{form}_{type_}"]
    ramp = np.arange(n * count).astype(type_)
    # The same memory for all: where arrays lie may decide how they are copied.
    x, values, indices = np.empty_like(ramp), np.zeros_like(ramp), np.zeros(n * count, np.uint32)
    x_at, values_at, indices_at = (ctypes.c_void_p(array.ctypes.data) for array in (x, values, indices))
    stride = count if form.startswith("columns") else n
    sizes = ctypes.c_size_t(count), ctypes.c_size_t(stride)
    found = set()
    for given in (ramp[::-1], np.zeros_like(ramp), hostile(type_, n * count)):
        x[:] = given
        steps = ctypes.c_uint64()
        end = values_at, ctypes.c_size_t(count), indices_at, ctypes.byref(steps)
        trace = library.trace(function, x_at, *sizes, *end)
        assert steps.value > 3 * n
        found.add((trace, steps.value))
    return found


def test_a_branch_on_values_is_seen(tmp_path):
    """The tracer tells apart what a comparison of two values decides."""
    text = (
        '#include "tracer.h"\n'
        + """
void f_five_one_int32(const int32_t *x, size_t count, size_t stride, int32_t *values, size_t values_stride,
                      uint32_t *indices) {
    (void)count, (void)stride, (void)values_stride;
    for (size_t k = 0; k < 4; ++k)
        if (x[k] < x[k + 1]) indices[0] += 3, values[k] = x[k];
}
"""
    )
    program = write(tmp_path, {}, text)
    flags = ["-O1", "-mno-red-zone", "-fPIC", "-shared", f"-I{TRACER.parent}"]
    build("gcc", "c11", *flags, program, "-o", tmp_path / "p.so")
    assert len(traces(ctypes.CDLL(str(tmp_path / "p.so")), "five", "one", "int32", 1)) > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtypes": "bool"}, "dtypes must be some of float64, float32, int64"),
        ({"dtypes": 3}, "got 3"),
        ({"select": 3}, "select must be"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(LoweringError, match=message):
        nsc.emit("c", "best", 4, **options)


def test_a_network_that_does_not_sort_has_no_header():
    with pytest.raises(VerificationError, match="does not sort"):
        nsc.emit("c", [(0, 1)], 3)


@SLOW
@pytest.mark.parametrize(("size", "select"), [((3, 3), median()), ((2, 5), ranks(7))])
def test_a_window_filters_every_image(size, select, tmp_path):
    """Images with fewer rows or columns than the window have no results."""
    rows, columns = size
    text = nsc.emit("c", f"{rows}x{columns}", select=select, dtypes=("uint8", "float32"), name="window")
    signature = "void f_{0}(const {1} *x, size_t r, size_t c, size_t s, {1} *v, size_t t)"
    call = "{{ window_image_{0}(x, r, c, s, v, t); }}"
    lines = [
        "{0};\n{0} {1}".format(signature.format(*words), call.format(*words))
        for words in (("uint8", "uint8_t"), ("float32", "float"))
    ]
    program = write(tmp_path, {"window": text}, '#include "window.h"\n' + "\n".join(lines) + "\n")
    build("gcc", "c11", "-O1", "-fPIC", "-shared", program, "-o", tmp_path / "p.so")
    library = ctypes.CDLL(str(tmp_path / "p.so"))
    (rank,) = select.outputs(rows * columns).values()
    for type_ in ("uint8", "float32"):
        for shape in ((1, 1), (rows, columns), (rows + 2, 70), (9, lanes(type_) + columns - 1), (0, 5)):
            x, values = hostile(type_, (shape[0], shape[1] + 3)), np.zeros((shape[0], shape[1] + 1), type_)
            arrays = [ctypes.c_void_p(array.ctypes.data) for array in (x, values)]
            numbers = [ctypes.c_size_t(number) for number in (*shape, shape[1] + 3, shape[1] + 1)]
            getattr(library, f"f_{type_}")(arrays[0], *numbers[:3], arrays[1], numbers[3])
            expected = np.zeros_like(values)
            if shape[0] >= rows and shape[1] >= columns:
                view = np.lib.stride_tricks.sliding_window_view(x[:, : shape[1]], size)
                found = np.sort(view.reshape(*view.shape[:2], -1), axis=-1)[..., rank]
                expected[: found.shape[0], : found.shape[1]] = found
            np.testing.assert_array_equal(values, expected)


def test_a_header_says_what_is_there():
    one, some = nsc.emit("c", "best", 9, select=median()), nsc.emit("c", "best", 9, select=ranks(3, 4))
    for text in (
        "Its result is the value of rank 4; 0 is the smallest.",
        "value w is x[w], the result is values[0].",
        "value w of sample s is x[s * stride + w], its result is values[s].",
        "value w of sample s is x[w * stride + s], its result is values[s].",
        "172 bytes of stack at most for one sample, 2 KB for more",
    ):
        assert text in one, text
    assert "Its results are the values of ranks 3, 4; 0 is the smallest." in some
    assert "its result r is values[s * 2 + r]" in some
    window = nsc.emit("c", "3x3", select=median())
    assert window.startswith("/* median_3x3.h: exact selection of the median of 3x3 pixels, ")
    assert "Made by: nsc emit c 3x3 --median\n" in window
    assert "_image_" not in one


@pytest.mark.parametrize("select", [None, top_k(2), ranks(1, 2)])
def test_a_window_selects_one_value(select):
    with pytest.raises(LoweringError, match="say which value of 3x3 pixels is selected: median=True"):
        nsc.emit("c", "3x3", select=select)

"""Catches a check of `nsc verify` that accepts a kernel with wrong arithmetic, for each check.

Each kernel is built once with all mutants, of which the number in a small library makes one run.
"""

from __future__ import annotations

import ctypes
import functools
import re
import subprocess

import pytest
import torch
from click.testing import CliRunner

from nsc import library
from nsc.audit import laws
from nsc.audit.relaxed import relaxed_claim
from nsc.audit.windows import filter_claim
from nsc.cli.main import main
from nsc.contract.manifest import read_files
from nsc.join.budget import budget_of
from nsc.join.on_demand import compiled_filter, exact_kernel, filter_kernel
from nsc.runtime.relaxed import kernel

pytestmark = pytest.mark.slow("wrong kernels are built")

# The header that each kernel includes first, its first definition, and the number of the mutant that runs.
FIRST, DEFINITION = "nsc/attributes.h", "#define NSC_INLINE"
SWITCH = 'extern "C" __attribute__((visibility("default"))) int nsc_mutant;\n'
PACKAGES = {
    "logistic": "compile --net bitonic --n 6 --dtype float32 --dtype float64",
    "median": "filter 3x3 --median",
}
# By the check that refuses them first, mutants: a header of library/nsc; a text that it has once, in which «
# and » enclose an expression; and the expression that takes its place.
MUTANTS = {
    "float32, values and ranks: 0-1 input": (
        "relaxed/comparators.h",
        "gap = «tail == 0 ? Row{} : gap»;",
        "gap",
    ),
    "the routing 'none' has wrong values": (
        "relaxed/comparators.h",
        ", v = «steepness * activation[i]»;",
        "real(1.01) * steepness * activation[i]",
    ),
    "the routing 'rows' is wrong": ("relaxed/groups.h", "call.ranks_of(sample)[«column + k»] :", "column"),
    "the gradient of the routing 'none' is wrong": (
        "relaxed/comparators.h",
        "    lo = «a + share * gap»;",
        "a - share * gap",
    ),
    "the gradient of the routing 'route' is wrong": (
        "relaxed/butterflies.h",
        "products[c] += differences[c] * «(a - b)»;",
        "b",
    ),
    "the gradient of the routing 'permutation' is wrong": (
        "relaxed/narrow_pass.h",
        "differences[column * count + c] = «a - b»;",
        "b - a",
    ),
    "the gradient of the routing 'none' is another for a sample alone": (
        "relaxed/layers.h",
        "pair[0] = «hi[k] - lo[k]»,",
        "lo[k]",
    ),
    "the gradient of the routing 'none' is another without the steepness's": (
        "relaxed/samples.h",
        "move_gradients<real>(lo, hi, «of_codelet.share[k]»);",
        "steepness_parts ? of_codelet.share[k] : Vec<real>{}",
    ),
    "the loss 'cross_entropy' is wrong": (
        "relaxed/probability.h",
        "all(real(«lowest_log»))",
        "lowest_log + 1",
    ),
    "float64, routings and gradients: the loss 'cross_entropy' is wrong": (
        "relaxed/functions.h",
        "(log.of_fraction + «log.exponent * C::log2_low» +",
        "0 * log.exponent",
    ),
    "the loss 'binary_cross_entropy' is wrong": ("relaxed/losses.h", "«(1 - share)» * of(false)", "share"),
    "the loss 'cross_entropy_of_intervals' is wrong": (
        "relaxed/targets.h",
        "«Log<real>(share(2, column))»};",
        "1 / Log<real>(wires)",
    ),
    "the loss 'cross_entropy_of_shares' is wrong": (
        "relaxed/targets.h",
        "«Log<real>(share(wires, column))»};",
        "1 / Log<real>(wires)",
    ),
    "the gradient of the loss 'cross_entropy' is wrong": (
        "relaxed/columns.h",
        "return weights != 0 ? «weights * slope» :",
        "slope * real(0.25)",
    ),
    "the gradient of the shares in the loss 'binary_cross_entropy_of_shares' is wrong": (
        "relaxed/losses.h",
        "slope : slope - «Loss::template of<real>(p, false)»;",
        "0 * p.p",
    ),
    "float32, exact kernel: 0-1 input": (
        "exact/values.h",
        "items[0] = «Element::key(bits, order)»;",
        "bits",
    ),
    "float32, exact kernel: 0-1 input 1": (
        "elements.h",
        "ordered(Vec<Key> bits) { return «bits ^ ((bits >> (8 * sizeof(integer) - 1)) & most)»; }",
        "bits",
    ),
    "float64, exact kernel: 0-1 input": (
        "exact/indexed_values.h",
        "(Vec<int64_t>)(«y.index < x.index»));",
        "y.index > x.index",
    ),
    "uint8, windows: 0-1 input": (
        "windows/strips.h",
        "const int64_t x = register_at<Key>(«at», width);",
        "0",
    ),
    "uint8, missing pixels: images": (
        "windows/missing.h",
        "const int64_t low = «missing.low[count]», high",
        "missing.low[0]",
    ),
    "float32, missing pixels: images": (
        "windows/missing.h",
        "high = «missing.high[count]»;",
        "missing.low[count]",
    ),
    "uint8, images: images of 3 columns in mode mirror": (
        "windows/modes.h",
        "at < length ? at : «2 * length - 2 - at»;",
        "length - 1",
    ),
    "float32, images: images of 3 columns": (
        "windows/rims.h",
        "store(keys + x, «Element::key(load(keys + x), Vec<Key>{})»);",
        "load(keys + x)",
    ),
}


@functools.cache
def mutated(name: str) -> str:
    """Return a header with its mutants, and with the switch if it begins a kernel."""
    text = (library.FOLDER / name).read_text(encoding="utf-8")
    for number, (file, marked, wrong) in enumerate(MUTANTS.values(), start=1):
        if f"nsc/{file}" != name:
            continue
        before, right, behind = (
            # The lines of a text may be broken at other places.
            r"\s*".join(["", *map(re.escape, "".join(part.split())), ""])
            for part in re.split("[«»]", marked)
        )
        text, count = re.subn(
            f"({before})({right})({behind})",
            lambda found, number=number, wrong=wrong: (
                f"{found[1]}(nsc_mutant == {number} ? ({wrong}) : ({found[2]})){found[3]}"
            ),
            text,
        )
        assert count == 1, f"{name} has not once {marked!r}"
    return text.replace(DEFINITION, SWITCH + DEFINITION, 1) if name == FIRST else text


def computed_once(function):
    """Return `laws._by_reference`, which computes for all mutants what does not depend on them."""
    known = {}

    def by_reference(of_kernel, routing, at, *others):
        operands = (None if each is None else each.numpy().tobytes() for each in at)
        key = (of_kernel.spec, routing, at.x.dtype, *operands)
        if key not in known:
            known[key] = function(of_kernel, routing, at, *others)
        return known[key]

    return by_reference


@pytest.fixture
def refusal(tmp_path, monkeypatch):
    """Return what `nsc verify` finds wrong first in a package, whose kernel runs a mutant by its number."""
    (tmp_path / "switch.cpp").write_text(f"{SWITCH}int nsc_mutant;\n", encoding="utf-8")
    command = ["g++", "-shared", "-fPIC", "switch.cpp", "-o", "switch.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    switch = ctypes.CDLL(str(tmp_path / "switch.so"), ctypes.RTLD_GLOBAL)
    mutant = ctypes.c_int.in_dll(switch, "nsc_mutant")
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "text", mutated)
    monkeypatch.setattr(laws, "_by_reference", computed_once(laws._by_reference))
    monkeypatch.setattr(kernel, "_kernels", {})
    for kept in (exact_kernel, filter_kernel, compiled_filter):
        kept.cache_clear()
    for name, line in PACKAGES.items():
        result = CliRunner().invoke(main, [*line.split(), "--name", name, "--out", str(tmp_path)])
        assert result.exit_code == 0, result.output or result.exception

    def verify(name, number):
        mutant.value = number
        files = read_files(tmp_path / name)
        *_, checks_of = filter_claim(files) if name == "median" else relaxed_claim(files)
        return next((check.sentence() for check in checks_of(budget_of()) if check.wrong), "")

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for few wires, threads wait for each other
    yield verify
    torch.set_num_threads(threads)
    for kept in (exact_kernel, filter_kernel, compiled_filter):
        kept.cache_clear()


def test_each_check_refuses_its_mutant(refusal):
    assert [refusal(name, 0) for name in PACKAGES] == ["", ""]
    for number, (words, (file, *_)) in enumerate(MUTANTS.items(), start=1):
        found = refusal("median" if file.startswith("windows") else "logistic", number)
        assert words in found, file

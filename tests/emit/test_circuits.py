"""Catches circuits that sort wrongly, lose a tag or a cycle, or that a tool for hardware warns of."""

from __future__ import annotations

import re

import pytest
from circuits import NETWORKS, Instance, check, control, emitted, ghdl, run, samples, text, verilator

import nsc
from nsc.compiler.passes import half_operations
from nsc.errors import LoweringError

SLOW = pytest.mark.slow("simulators and synthesis run circuits")
MORE = pytest.mark.nightly("circuits have every value of every parameter")
CYCLES = 6500
# Bits of a key and of a tag, whether keys are signed, layers in a stage.
SETTINGS = [(8, 0, False, 0), (8, 8, True, 1), (5, 3, False, 2), (16, 0, True, 3)]
OTHERS = [
    (1, 7, False, 1),
    (1, 7, True, 0),
    (8, 0, True, 2),
    (31, 1, True, 100),
    (32, 0, False, 3),
    (6, 2, True, 4),
]
ALL = [Instance(name, *setting) for name in NETWORKS for setting in SETTINGS]
# GHDL simulates them one after the other.
FEW = [
    *(Instance("sort8", *SETTINGS[place]) for place in (1, 3)),
    *(Instance(name, *SETTINGS[0]) for name in ("sort12", "one")),
    *(Instance(name, *SETTINGS[place]) for name, place in (("median9", 1), ("median25", 2), ("top4", 1))),
]


def stimulus(instances):
    """Return steps, and what each instance is given; all 0-1 inputs get in."""
    steps = control(CYCLES)
    taken = steps[:, 1] & steps[:, 2] & ~steps[:, 0]
    assert taken[: CYCLES // 2].sum() > 1 << 9
    assert taken.sum() > 1 << 12
    return steps, [samples(instance, taken) for instance in instances]


@SLOW
@pytest.mark.parametrize(
    "instances",
    [ALL, pytest.param([Instance("sort8", *each) for each in OTHERS], marks=MORE)],
    ids=["all", "others"],
)
def test_verilog_is_numpys_sort(instances, tmp_path):
    steps, given = stimulus(instances)
    found = verilator(instances, steps, given, tmp_path)
    for instance, items, (valid, results) in zip(instances, given, found, strict=True):
        check(instance, steps, items, valid, results)


@SLOW
@pytest.mark.parametrize(
    "instance",
    [
        *FEW,
        *(pytest.param(each, marks=MORE) for each in ALL if each not in FEW),
        *(pytest.param(Instance("sort8", *each), marks=MORE) for each in OTHERS),
    ],
    ids=str,
)
def test_vhdl_is_numpys_sort(instance, tmp_path):
    steps, (given,) = stimulus([instance])
    check(instance, steps, given, *ghdl(instance, steps, given, tmp_path))


@SLOW
@pytest.mark.parametrize(
    "name", ["median9", pytest.param("median25", marks=MORE), pytest.param("top4", marks=MORE)]
)
def test_yosys_finds_the_registers_that_the_text_states(name, tmp_path):
    """And no latch, and nothing to warn of; without optimisation, so that no register is removed."""
    (tmp_path / "circuit.v").write_text(text("verilog", name))
    latencies, registers = re.search(
        r"With 1, 2, 3 layers per stage: (.*) clocks, registers for (.*) items", text("verilog", name)
    ).groups()
    stated = zip(*(map(int, numbers.split(", ")) for numbers in (latencies, registers)), strict=True)
    for layers, (latency, items) in enumerate(stated, 1):
        settings = f"-chparam LAYERS_PER_STAGE {layers} -chparam TAG_WIDTH 3"
        said = run(
            "yosys",
            "-p",
            f"read_verilog circuit.v; hierarchy -top {name} {settings}; proc; stat -width",
            cwd=tmp_path,
        )
        assert b"Warning" not in said
        cells = re.findall(r"\$(\w*(?:dff|latch)\w*?)_(\d+) +(\d+)", said.decode())
        assert {kind for kind, *_ in cells} <= {"dff", "dffe", "sdff", "sdffe"}
        assert sum(int(width) * int(number) for _, width, number in cells) == items * 11 + latency


@SLOW
@pytest.mark.parametrize("layers", [0, 2])
def test_yosys_synthesises_without_a_warning(layers, tmp_path):
    (tmp_path / "circuit.v").write_text(text("verilog", "median9"))
    settings = f"chparam -set LAYERS_PER_STAGE {layers} -set TAG_WIDTH 1 median9"
    said = run(
        "yosys", "-p", f"read_verilog circuit.v; {settings}; synth -top median9; check -assert", cwd=tmp_path
    )
    assert b"Warning" not in said
    cells = said.rpartition(b"Number of cells")[2]
    assert b"LATCH" not in cells
    assert (b"DFF" in cells) == (layers > 0)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_circuit_states_what_it_is_of(name):
    network, n, select = NETWORKS[name]
    outputs = range(n) if select is None else select.outputs(n)
    proved, circuit = emitted("verilog", name).network, text("verilog", name)
    whole, half = map(
        int, re.search(r"Cost: (\d+) comparators?, (\d+) half comparators?\.", circuit).groups()
    )
    assert whole + half == proved.size
    assert 2 * whole + half == half_operations(proved, outputs)
    assert f"Latency: {proved.depth} / LAYERS_PER_STAGE clocks, rounded up" in circuit
    results = "all values, the smallest first"
    if select is not None:
        ranks = [*select.outputs(n).values()]
        noun = "value of rank" if len(ranks) == 1 else "values of ranks"
        results = f"the {noun} {', '.join(map(str, ranks))}; 0 is the smallest"
    for language in ("verilog", "vhdl"):
        written = text(language, name)
        assert f" Results: {results}.\n" in written
        assert f" Made by: nsc emit {language} {network} --n {n}" in written.splitlines()[2]
        # A half comparator has one half, and a comparator both.
        assert len(re.findall(r"= (?:smaller|larger)\(", written)) == 2 * whole + half


@pytest.mark.parametrize("language", ["verilog", "vhdl"])
def test_a_text_grows_as_the_network(language):
    sizes = [len(nsc.emit(language, "bitonic", n)) for n in (32, 128)]
    assert sizes[1] / sizes[0] < 1.2 * nsc.network("bitonic", 128).size / nsc.network("bitonic", 32).size


@pytest.mark.parametrize("name", ["a__b", "_a", "a_"])
def test_a_name_that_vhdl_does_not_take_is_refused(name):
    with pytest.raises(LoweringError, match=f"VHDL takes no name such as {name}: choose another name"):
        nsc.emit("vhdl", "best", 3, name=name)
    assert f"module {name} " in nsc.emit("verilog", "best", 3, name=name)

"""The machine code of the CUDA text, held by a table: tests/golden/machine_code.md."""

from __future__ import annotations

from pathlib import Path

import machine_code
import pytest
from machine_code import COUNTED, MOST_REGISTERS, WITHOUT_SPILLS

from nsc.runtime.build import nvrtc

pytestmark = pytest.mark.slow("NVRTC compiles for a minute")
LARGE = pytest.mark.nightly("NVRTC compiles large networks")

GOLDEN = Path(__file__).parents[1] / "golden" / "machine_code.md"
# The version that the table was counted with.
VERSION = (13, 5)
COMPILER = f"NVRTC {VERSION[0]}.{VERSION[1]} for {machine_code.ARCHITECTURE}"
HEAD = f"""# Machine code of the CUDA kernels

{COMPILER}, logistic with ART 0.25. Counted in the compiler's report and its machine code, not
measured: registers of a thread, bytes of spills and of stack, and the instructions of the whole function.

| network | function | registers | spills | stack | instructions |
|---|---|---:|---:|---:|---:|
"""


@pytest.fixture
def of_the_version():
    version = nvrtc._nvrtc().getVersion()
    if version != VERSION:
        pytest.skip(f"the table is of NVRTC {VERSION}, this is {version}")


def rows(network, figures):
    family, n, _ = network
    return "".join(
        f"| {family} {n} | {name} | {' | '.join(map(str, numbers))} |\n" for name, numbers in figures.items()
    )


@pytest.mark.usefixtures("of_the_version")
@LARGE
def test_a_network_without_spills_is_as_in_the_table():
    figures = machine_code.figures(*WITHOUT_SPILLS)
    for name, (registers, spilled, stack, _) in figures.items():
        assert registers <= MOST_REGISTERS, name
        assert spilled == stack == 0, name
    assert rows(WITHOUT_SPILLS, figures) in GOLDEN.read_text(encoding="utf-8")


@pytest.mark.usefixtures("of_the_version")
@LARGE
def test_the_table_is_true(golden):
    golden("machine_code.md", HEAD + "".join(rows(each, machine_code.figures(*each)) for each in COUNTED))


@pytest.mark.parametrize(
    "n",
    [128, *(pytest.param(n, marks=LARGE) for n in (32, 64))],
)
def test_several_rows_of_a_tensor_are_asked_for_at_a_time(n):
    """Else each row of a payload or a gradient would cost the time of a read from memory."""
    functions = ("route", "reversed", "route_backward")
    code, _ = machine_code.compiled(machine_code.codelet(n), "float32", functions)
    for function in functions:
        reads = machine_code.reads_in_flight(code[f"nsc_{function}_f32"], machine_code.ROW_OF_TENSOR)
        assert reads >= 8, function


def test_several_packs_of_values_are_asked_for_at_a_time():
    for function, code in machine_code.compiled_exact(64, "float32").items():
        assert machine_code.reads_in_flight(code, machine_code.PACK_OF_VALUES) == 8, function

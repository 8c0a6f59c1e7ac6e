"""The machine code of the CUDA text, held by a table: tests/golden/machine_code.md."""

from __future__ import annotations

import json
from pathlib import Path

import machine_code
import pytest
from machine_code import MOST_REGISTERS, WIRES_WITHOUT_SPILLS

from nsc.runtime.build import nvrtc

# The version that the table was counted with.
VERSION = (13, 5)
BEFORE = json.loads((Path(__file__).parent / "machine_code_before.json").read_text())
COMPILER = f"NVRTC {VERSION[0]}.{VERSION[1]} for {machine_code.ARCHITECTURE}"
CODELET = f"{machine_code.CODELET_WIRES} wires, {machine_code.CODELET_COMPARATORS} comparators"
HEAD = f"""# Machine code of the CUDA kernels

{COMPILER}. Counted in the compiler's report and its machine code, not measured. "Before" is the
text in which a lane had one column, every spread came from a table, the keys went codelet by codelet
and exact sorting compared keys and places one after the other.

## Instructions of a codelet

{CODELET}. Instructions of a warp for each comparator and column of its lanes; of an exact sort
for each comparator. All code counts, be it run or not: a backward pass has code for a sample on one
lane and for one on many.
"""
FUNCTIONS = """
## Functions

Registers of a thread, bytes of spills, bytes of stack, instructions of the whole function. float32, logistic
with ART 0.25.
"""


def table(head, rows):
    lines = ["", f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def text(codelets, functions):
    by_kind = [
        [name, f"{BEFORE['codelets'][name]['all']:.2f}", *(f"{number:.2f}" for number in kinds.values())]
        for name, kinds in codelets.items()
    ]
    by_function = [
        [f"{network}, {name}", *(", ".join(map(str, numbers)) for numbers in (before.get(name, ()), now))]
        for network, figures in functions.items()
        for before in [BEFORE["functions"][network]]
        for name, now in figures.items()
    ]
    return (
        HEAD
        + table(["function", "before", "now", *machine_code.KINDS, "other"], by_kind)
        + FUNCTIONS
        + table(["function", "before", "now"], by_function)
    )


def test_the_table_is_true(golden):
    version = nvrtc._nvrtc().getVersion()
    if version != VERSION:
        pytest.skip(f"the table is of NVRTC {VERSION}, this is {version}")
    functions = machine_code.whole_functions()
    for network in ("bitonic 16", f"bitonic {WIRES_WITHOUT_SPILLS}"):
        for name, (registers, spilled, stack, _) in functions[network].items():
            assert registers <= MOST_REGISTERS, name
            assert spilled == stack == 0, name
    golden("machine_code.md", text(machine_code.codelets(), functions))


@pytest.mark.parametrize("n", [32, 128])
def test_several_rows_of_a_tensor_are_asked_for_at_a_time(n):
    """Else each row of a payload or a gradient would cost the time of a read from memory."""
    functions = ("route", "reversed", "route_backward", "reversed_backward")
    code, _ = machine_code.compiled(machine_code.butterflies(n, shapes=1), "float32", functions)
    for function in functions:
        assert machine_code.rows_in_flight(code[f"nsc_{function}_f32"]) >= 8, function

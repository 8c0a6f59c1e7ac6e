"""The numbers of instructions in the benchmarks, counted again."""

from __future__ import annotations

from collections import Counter

import machine_loops
import pytest
from machine_code import ARCHITECTURE, CODELET_COMPARATORS, KINDS
from test_machine_code import VERSION
from test_tensor_cores import compiled

from benchmarks import tensor_cores
from benchmarks.gpu import limits
from nsc.compiler.families import family_network
from nsc.runtime.build import nvrtc

# A lane of the product has two columns, and a warp of tensor cores takes 32 at a time.
COLUMNS = 64
MMA = "HMMA"


@pytest.fixture(scope="module")
def product():
    version = nvrtc._nvrtc().getVersion()
    if version != VERSION:
        pytest.skip(f"the counts are of NVRTC {VERSION}, this is {version}")
    return machine_loops.product_turns()


def test_the_limits_are_of_what_is_run(product):
    (route,), backward, (sort,) = product["route"], product["route_backward"], product["sort"]
    mixes = CODELET_COMPARATORS * COLUMNS // limits.WARP
    assert route.total() / mixes == limits.FORWARD_INSTRUCTIONS
    assert len(backward) == 2
    assert sum(turn.total() for turn in backward) / mixes == limits.BACKWARD_INSTRUCTIONS
    assert sort.total() / CODELET_COMPARATORS == limits.SORT_INSTRUCTIONS


def row(name, turn, count):
    """Return a row of the table in tensor_cores: the instructions of `count` turns, by kind."""
    numbers = [turn.total(), turn[MMA], *(sum(turn[name] for name in KINDS[kind]) for kind in OF_TABLE)]
    numbers.append(numbers[0] - sum(numbers[1:]))
    widths = (6, 5, 16, 8, 8, 10, 8)
    return f"    {name:<27}" + "".join(
        f"{count * number or '–':>{width}}" for number, width in zip(numbers, widths, strict=True)
    )


OF_TABLE = ("floating point", "shared", "global", "shuffle")


def test_the_table_of_tensor_cores_is_of_what_is_run(product):
    network = family_network("bitonic", 32)
    cubin, _ = nvrtc.Nvrtc(ARCHITECTURE, "any").compiled(tensor_cores.text(network, compiled(network)))
    functions = machine_loops.disassembled(cubin)
    tensor_turns = {f: machine_loops.turns(functions[f"tensor_{f}"], MMA) for f in ("forward", "backward")}
    ours = [*product["route"], *product["route_backward"]]
    theirs = [*tensor_turns["forward"], *tensor_turns["backward"]]
    names = "forward", "keeping", "backward"
    assert len(ours) == len(theirs) == len(names)
    rows = []
    for name, own, other in zip(names, ours, theirs, strict=True):
        rows += [row(f"{name}, product", own, 1), row(f"{name}, tensor cores", other, 2)]
    assert "\n".join(rows) in tensor_cores.__doc__
    times = sum(turn.total() for turn in ours) / sum(2 * turn.total() for turn in theirs)
    assert f"take {times:.1f} times fewer in all" in tensor_cores.__doc__


CODE = """
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   FFMA R0, R0, R0, R0 ;
        /*0020*/              @P0  BRA `(.L_x_3) ;
        /*0030*/                   BRA.DIV UR4, `(.L_x_4) ;
        /*0040*/                   SHFL.BFLY PT, R2, R0, 0x1, 0x1f ;
.L_x_2:
        /*0050*/                   FADD R0, R0, R2 ;
        /*0060*/              @!P1 BRA `(.L_x_1) ;
        /*0070*/                   EXIT ;
.L_x_3:
        /*0080*/                   STG.E [R4.64], R0 ;
        /*0090*/                   STG.E [R6.64], R0 ;
        /*00a0*/                   BRA `(.L_x_2) ;
.L_x_4:
        /*00b0*/                   WARPSYNC.COLLECTIVE R3, `(.L_x_5) ;
.L_x_5:
        /*00c0*/                   SHFL.BFLY PT, R2, R0, 0x1, 0x1f ;
        /*00d0*/                   SHFL.BFLY PT, R2, R0, 0x1, 0x1f ;
        /*00e0*/                   BRA `(.L_x_2) ;
        /*00f0*/                   NOP ;
"""


def test_a_turn_goes_where_lanes_exchange_and_run_together(monkeypatch):
    monkeypatch.setattr(machine_loops, "CODELET_WIRES", 1)
    assert machine_loops.turns(CODE, "STG") == []
    (turn,) = machine_loops.turns(CODE, "FFMA")
    assert turn == Counter({"BRA": 3, "FFMA": 1, "SHFL": 1, "FADD": 1})
    (turn,) = machine_loops.turns(CODE.replace("SHFL", "MOV"), "FFMA")
    assert turn["STG"] == 2  # without exchanges the longest path

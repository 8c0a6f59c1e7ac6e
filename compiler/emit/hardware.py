"""Circuits in Verilog and VHDL: the layers of a network, and where a pipeline has registers.

The signal w3_2 is wire 3 behind layer 2, and c3_2 is what the layer puts on it, before a register. Registers stand
behind the last layer and behind every so many before it, so results come from registers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nsc.compiler.emit.plan import Operation, Plan
from nsc.compiler.text import filled
from nsc.wording import count

# Words of Verilog-2005 and SystemVerilog, which many tools read in its place.
_VERILOG_WORDS = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind bins
binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config const
constraint context continue cover covergroup coverpoint cross deassign default defparam design disable dist do edge
else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface endmodule
endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask enum event eventually expect
export extends extern final first_match for force foreach forever fork forkjoin function generate genvar global highz0
highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir include initial inout input inside
instance int integer interconnect interface intersect join join_any join_none large let liblist library local
localparam logic longint macromodule matches medium modport module nand negedge nettype new nexttime nmos nor
noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge primitive priority program
property protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase
randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1
s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled signed small
soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on
sync_reject_on table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand
trior trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void
wait wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""
# Words of VHDL-2008, and names of the libraries and types that the text uses.
_VHDL_WORDS = """
abs access after alias all and architecture array assert assume assume_guarantee attribute begin block body buffer bus
case component configuration constant context cover default disconnect downto else elsif end entity exit fairness file
for force function generate generic group guarded if impure in inertial inout is label library linkage literal loop
map mod nand new next nor not null of on open or others out package parameter port postponed procedure process
property protected pure range record register reject release rem report restrict restrict_guarantee return rol ror
select sequence severity shared signal sla sll sra srl strong subtype then to transport type unaffected units until
use variable vmode vprop vunit wait when while with xnor xor
boolean ieee natural positive signed std std_logic std_logic_vector unsigned work
"""
# The names that a module, and an entity, may have.
VERILOG_NAMES = rf"(?!({'|'.join(_VERILOG_WORDS.split())})$)\w+"
VHDL_NAMES = rf"(?i)(?!({'|'.join(_VHDL_WORDS.split())})$)[a-z]+(_?[a-z0-9]+)*"
# Latency and registers are stated for pipelines of so many layers in a stage.
STATED = (1, 2, 3)
_WIDTH = 104


@dataclass(frozen=True)
class Layer:
    """A layer of a circuit.

    Attributes:
        number: its place, from 1.
        behind: how many layers come behind it.
        words: how many comparators and half comparators it has.
        comparators: of each, the halves that something needs: a signal and its value.
        results: lines of names of these signals.
        wires: lines of names of the live wires behind the layer.
        assigned: lines of statements that give these wires their values: signals in VHDL, registers in Verilog.
        blocking: the same for wires in Verilog.
    """

    number: int
    behind: int
    words: str
    comparators: tuple[tuple[tuple[str, str], ...], ...]
    results: tuple[str, ...]
    wires: tuple[str, ...]
    assigned: tuple[str, ...]
    blocking: tuple[str, ...]


def facts(plan: Plan) -> dict[str, Any]:
    """Return what the templates of circuits need of a plan."""
    operations = [operation for layer in plan.layers for operation in layer]
    depth = plan.network.depth
    ranks = "" if plan.ranks is None else ", ".join(map(str, plan.ranks))
    results = f"the items of rank {ranks}; 0 is the smallest" if ranks else "all items, the smallest first"
    cuts = {stage: range(depth, 0, -stage) for stage in STATED}
    return {
        "outputs": len(plan.outputs),
        "result_lines": textwrap.wrap(f"Results: {results}.", _WIDTH),
        "operations": _counted(operations),
        "stated": ", ".join(map(str, STATED)),
        "latencies": ", ".join(str(len(places)) for places in cuts.values()),
        "registers": ", ".join(f"{sum(len(plan.live[cut]) for cut in places):,}" for places in cuts.values()),
        "has_minimum": any(operation.has_minimum for operation in operations),
        "has_maximum": any(operation.has_maximum for operation in operations),
        "layers": [_layer(plan, number) for number in range(1, depth + 1)],
    }


def _counted(operations: Iterable[Operation]) -> str:
    """Return how many comparators there are, whole and half, in words."""
    halves = [len(operation.written) for operation in operations]
    words = [(halves.count(2), "comparator"), (halves.count(1), "half comparator")]
    return ", ".join(count(number, noun) for number, noun in words if number) or count(0, "comparator")


def _layer(plan: Plan, number: int) -> Layer:
    operations = plan.layers[number - 1]
    written = {wire for operation in operations for wire in operation.written}
    values = {
        wire: f"c{wire}_{number}" if wire in written else f"w{wire}_{number - 1}"
        for wire in plan.live[number]
    }
    return Layer(
        number=number,
        behind=plan.network.depth - number,
        words=_counted(operations),
        comparators=tuple(_halves(operation, number) for operation in operations),
        results=_names(f"c{wire}_{number}" for wire in sorted(written)),
        wires=_names(f"w{wire}_{number}" for wire in values),
        assigned=filled((f"w{wire}_{number} <= {value};" for wire, value in values.items()), _WIDTH),
        blocking=filled((f"w{wire}_{number} = {value};" for wire, value in values.items()), _WIDTH),
    )


def _halves(operation: Operation, number: int) -> tuple[tuple[str, str], ...]:
    functions = {operation.lo: "smaller", operation.hi: "larger"}
    wires = f"w{operation.lo}_{number - 1}, w{operation.hi}_{number - 1}"
    return tuple((f"c{wire}_{number}", f"{functions[wire]}({wires})") for wire in operation.written)


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(line.rstrip(",") for line in filled((f"{name}," for name in names), _WIDTH))

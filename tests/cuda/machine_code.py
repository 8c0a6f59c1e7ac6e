"""The machine code of the CUDA text: registers, spills, stack and instructions, for sm_90.

The figures are those of one version of NVRTC; another version may choose other registers and instructions.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Collection
from functools import cache
from importlib.metadata import files
from pathlib import Path

from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import schedule
from nsc.compiler.targets import cuda
from nsc.compiler.targets.records import Header
from nsc.contract.interface import REALS, function_name
from nsc.contract.launch import FUNCTIONS, LANE_BYTES
from nsc.runtime.build.nvrtc import Nvrtc, resources
from nsc.runtime.devices.launches import SHARED_KIB, launches

ARCHITECTURE = "sm_90"
# Registers that a thread can have, and the widest network whose float32 kernels all keep everything in them.
MOST_REGISTERS = 255
WIRES_WITHOUT_SPILLS = 32
# The functions that are counted of each network. The reversed routing is the routing with its codelets in the
# other order: it is not compiled for the networks whose functions take the longest.
ONE_WAY = tuple(function for function in FUNCTIONS if not function.startswith("reversed"))
NETWORKS = {
    ("bitonic", 16): FUNCTIONS,
    ("bitonic", WIRES_WITHOUT_SPILLS): FUNCTIONS,
    ("bitonic", 1024): ONE_WAY,
    ("odd_even", 32): ONE_WAY,
}
# The unit or memory that an instruction uses; all others are integers, addresses, selections, branches.
KINDS = {
    "floating point": ("FFMA", "FMUL", "FADD", "FSEL", "FSETP", "FMNMX", "DFMA", "DMUL", "DADD", "DSETP"),
    "shared": ("LDS", "STS"),
    "global": ("LDG", "STG", "LD", "ST"),
    "local": ("LDL", "STL"),
    "shuffle": ("SHFL",),
}
_KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}
_KERNEL = re.compile(r'extern "C" __global__ void\s[^{;]*?\bnsc_(\w+)_f\d\d\(.*?^}\n', re.S | re.M)
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
# A codelet: butterflies of 16 wires in four layers.
CODELET_WIRES, CODELET_LAYERS = 16, 4
CODELET_COMPARATORS = CODELET_LAYERS * CODELET_WIRES // 2
# The instruction that reads a lane's float32 columns of a row from a tensor.
ROW_OF_TENSOR = f"LDG.E.{8 * LANE_BYTES}.CONSTANT"
# Wires of a network of counted codelets: a warp has a tile to itself, and exact sorting runs codelets.
WIRES_AROUND = 32
CODELET_FUNCTIONS = ("route", "route_backward", "sort")


def compiled(
    network: Network, real: str, functions: Collection[str] = FUNCTIONS
) -> tuple[dict[str, list[str]], dict[str, tuple[int, int, int]]]:
    """Return the instructions of each function in order, and its registers, spilled bytes and stack bytes."""
    cubin, log = cubin_and_log(network, real, functions)
    figures = {f: (r.registers, r.spilled_bytes, r.stack_bytes) for f, r in resources(log).items()}
    return instructions(cubin), figures


def cubin_and_log(network: Network, real: str, functions: Collection[str]) -> tuple[bytes, str]:
    """Return the binary of some functions, which alone are compiled, and the compiler's log."""
    relaxation = Relaxation()
    levels = cuda.lower(schedule(network), relaxation)
    text = cuda.render(Header(*["counted"] * 5), "counted", levels, relaxation, (real,))
    assert {match[1] for match in _KERNEL.finditer(text)} == set(FUNCTIONS)
    text = _KERNEL.sub(lambda match: match[0] if match[1] in functions else "", text)
    defines = launches(network.n, levels.launch, (real,), SHARED_KIB[ARCHITECTURE] << 10).defines
    return Nvrtc(ARCHITECTURE, "", defines).compiled(text)


def instructions(cubin: bytes) -> dict[str, list[str]]:
    """Return the instructions of each function of a cubin, in order, with their suffixes."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [disassembler(), "--print-code", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {
        # NOP only fills the last line of the code.
        section[: section.index(":")]: [name for name in _INSTRUCTION.findall(section) if name != "NOP"]
        for section in re.split(r"^\.text\.", text, flags=re.MULTILINE)[1:]
    }


def kinds_of(code: list[str]) -> Counter[str]:
    """Return how many instructions of each kind there are."""
    return Counter(_KIND_OF.get(name.partition(".")[0], "other") for name in code)


def rows_in_flight(code: list[str]) -> int:
    """Return the most rows that a thread asks memory for before it stores one in shared memory."""
    most = rows = 0
    for name in code:
        if name == ROW_OF_TENSOR:
            rows += 1
            most = max(most, rows)
        elif name.startswith(("STS", "BAR", "WARPSYNC")):
            rows = 0
    return most


@cache
def disassembler() -> Path:
    """Return nvdisasm, of the package nvidia-cuda-nvdisasm."""
    paths = (Path(file.locate()) for file in files("nvidia-cuda-nvdisasm") or ())
    return next(path for path in paths if path.name == "nvdisasm")


def whole_functions() -> dict[str, dict[str, list[int]]]:
    """Return registers, spilled bytes, stack bytes and instructions of functions, float32, by network."""
    table = {}
    for (family, n), functions in NETWORKS.items():
        code, figures = compiled(family_network(family, n), "float32", functions)
        table[f"{family} {n}"] = {
            name: [*figures[name], len(code[name])]
            for name in (function_name(function, "float32") for function in functions)
        }
    return table


def codelets() -> dict[str, dict[str, dict[str, float]]]:
    """Return the instructions of a codelet for each comparator and column of a lane, by kind.

    A second codelet of another shape adds them to a function: all of its code counts, run or not.
    """
    table = {}
    for real in REALS:
        single, _ = compiled(butterflies(WIRES_AROUND, shapes=1), real, CODELET_FUNCTIONS)
        double, _ = compiled(butterflies(WIRES_AROUND, shapes=2), real, CODELET_FUNCTIONS)
        columns = 8 * LANE_BYTES // int(real.removeprefix("float"))
        for function in CODELET_FUNCTIONS:
            name = function_name(function, real)
            share = CODELET_COMPARATORS * (1 if function == "sort" else columns)
            of_single, of_double = kinds_of(single[name]), kinds_of(double[name])
            kinds = {kind: (of_double[kind] - of_single[kind]) / share for kind in (*KINDS, "other")}
            if any(kinds.values()):
                table[name] = {"all": sum(kinds.values()), **kinds}
    return table


def butterflies(n: int, shapes: int) -> Network:
    """Return a network of one codelet, or of two with their layers in different orders."""

    def layer(bit: int, first: int) -> list[tuple[int, int]]:
        return [(first + a, first + a + (1 << bit)) for a in range(CODELET_WIRES) if not a >> bit & 1]

    second = [
        layer(CODELET_LAYERS - 1 - bit, CODELET_WIRES) if shapes == 2 else [] for bit in range(CODELET_LAYERS)
    ]
    return Network.from_layers(n, [layer(bit, 0) + second[bit] for bit in range(CODELET_LAYERS)])

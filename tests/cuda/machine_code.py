"""The machine code of the CUDA text: registers, spills, stack and instructions, for sm_90.

The figures are those of one version of NVRTC; another version may choose other registers and instructions.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Collection
from functools import cache
from importlib.metadata import files
from pathlib import Path

import torch

from nsc.compiler.families import family_network
from nsc.compiler.naming import Head
from nsc.compiler.network import Network
from nsc.compiler.relaxed import cuda
from nsc.compiler.request import Request
from nsc.compiler.schedule import schedule
from nsc.contract.exact import for_element
from nsc.contract.launch import FUNCTIONS, LANE_BYTES
from nsc.join.exact import exact_kernel
from nsc.runtime.build.nvrtc import Nvrtc, resources
from nsc.runtime.devices.launches import SHARED_KIB, exact_launches, launches

ARCHITECTURE = "sm_90"
# Registers that a thread can have, and the widest network whose float32 kernels all keep everything in them.
MOST_REGISTERS = 255
WITHOUT_SPILLS = ("bitonic", 32, "float32")
# The functions that are counted of each network. The reversed routing is the routing with its codelets in the
# other order: it is counted once.
ONE_WAY = tuple(function for function in FUNCTIONS if not function.startswith("reversed"))
COUNTED = {
    WITHOUT_SPILLS: FUNCTIONS,
    ("bitonic", 1024, "float32"): ONE_WAY,
    ("bitonic", 16, "float64"): ONE_WAY,
}
_KERNEL = re.compile(r'extern "C" __global__ void\s[^{;]*?\bnsc_(\w+)_f\d\d\(.*?^}\n', re.S | re.M)
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
# A codelet: butterflies of 16 wires in four layers.
CODELET_WIRES, CODELET_LAYERS = 16, 4
# The instructions that read a lane's float32 columns of a row from a tensor, and a pack of values.
ROW_OF_TENSOR = f"LDG.E.{8 * LANE_BYTES}.CONSTANT"
PACK_OF_VALUES = "LDG.E.128.CONSTANT"


def compiled(
    network: Network, real: str, functions: Collection[str]
) -> tuple[dict[str, list[str]], dict[str, tuple[int, int, int]]]:
    """Return the instructions of each function in order, and its registers, spilled bytes and stack bytes.

    The functions alone are compiled.
    """
    request = Request(network, dtypes=(real,))
    levels = cuda.lower(schedule(network), request)
    text = cuda.render(Head(*["counted"] * 5, network), "counted", levels, request)
    assert {match[1] for match in _KERNEL.finditer(text)} == set(FUNCTIONS)
    text = _KERNEL.sub(lambda match: match[0] if match[1] in functions else "", text)
    defines = launches(network.n, levels.launch, (real,), SHARED_KIB[ARCHITECTURE] << 10).defines
    cubin, log = Nvrtc(ARCHITECTURE, "", defines).compiled(text)
    figures = {f: (r.registers, r.spilled_bytes, r.stack_bytes) for f, r in resources(log).items()}
    return _instructions(cubin), figures


def compiled_exact(n: int, dtype: str) -> dict[str, list[str]]:
    """Return the instructions of the functions that sort n values exactly, in order."""
    source = exact_kernel(n).source
    launched = exact_launches(source, getattr(torch, dtype).itemsize, SHARED_KIB[ARCHITECTURE] << 10)
    text = for_element(source.texts["cuda"], dtype)
    return _instructions(Nvrtc(ARCHITECTURE, "", launched.defines).compiled(text)[0])


def _instructions(cubin: bytes) -> dict[str, list[str]]:
    """Return the instructions of each function of a cubin, in order, with their suffixes."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [_disassembler(), "--print-code", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {
        # NOP only fills the last line of the code.
        section[: section.index(":")]: [name for name in _INSTRUCTION.findall(section) if name != "NOP"]
        for section in re.split(r"^\.text\.", text, flags=re.MULTILINE)[1:]
    }


def reads_in_flight(code: list[str], read: str) -> int:
    """Return the most reads that a thread asks memory for before it stores one in shared memory.

    Args:
        code: a function.
        read: the instruction.
    """
    most = rows = 0
    for name in code:
        if name == read:
            rows += 1
            most = max(most, rows)
        elif name.startswith(("STS", "BAR", "WARPSYNC")):
            rows = 0
    return most


@cache
def _disassembler() -> Path:
    """Return nvdisasm, of the package nvidia-cuda-nvdisasm."""
    paths = (Path(file.locate()) for file in files("nvidia-cuda-nvdisasm") or ())
    return next(path for path in paths if path.name == "nvdisasm")


def figures(family: str, n: int, real: str) -> dict[str, tuple[int, int, int, int]]:
    """Return registers, spilled bytes, stack bytes and instructions of a network's counted functions."""
    code, resources_of = compiled(family_network(family, n), real, COUNTED[family, n, real])
    return {name: (*found, len(code[name])) for name, found in resources_of.items()}


def codelet(n: int) -> Network:
    """Return a network of one codelet: butterflies."""
    layers = [
        [(a, a + (1 << bit)) for a in range(CODELET_WIRES) if not a >> bit & 1]
        for bit in range(CODELET_LAYERS)
    ]
    return Network.from_layers(n, layers)

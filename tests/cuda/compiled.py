"""`python compiled.py [LIBRARY…]`: prints NVRTC's results for each of the CASES, as JSON.

The libraries are loaded first, so that CuPy takes their NVRTC instead of the newest that it finds. A process
has one NVRTC, so each version needs a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import re
import struct
import sys
from dataclasses import dataclass

from nsc.compiler.driver import Request, compile_network
from nsc.compiler.network import Network
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.schedule import codelets
from nsc.runtime.build import nvrtc
from nsc.runtime.kernel import Kernel

ARCHITECTURES = ("sm_80", "sm_90", "sm_120")
BOTH = ("float32", "float64")


@dataclass(frozen=True)
class Case:
    """A kernel.

    Attributes:
        request: the request that it is compiled from.
        architectures: the GPUs that it is compiled for.
        tabled: whether all of its codelets run from tables.
    """

    request: Request
    architectures: tuple[str, ...]
    tabled: bool = False


def request(network, n, relaxation=None, select=None):
    return Request(network, n, relaxation or Relaxation(), BOTH, ("cuda",), select=select)


# Cases that differ in text are compiled for every architecture, those that differ in constants for one.
CASES = {
    "straight": Case(request("bitonic", 4), ARCHITECTURES),
    "a selection, error-free, tabled": Case(
        request("bitonic", 4, Relaxation("gaussian", 0.4, True), "top-1"), ("sm_80", "sm_120"), tabled=True
    ),
    "a selection, straight": Case(request("bitonic", 4, select="top-1"), ("sm_90",)),
    "no comparator": Case(request(Network.from_layers(1, []), 1), ("sm_90",)),
    "tiles of many warps, tabled": Case(request("odd_even", 66), ("sm_90",), tabled=True),
} | {
    f"{sigmoid}, {'error-free' if number % 2 else 'relaxed'}": Case(
        request("odd_even", 2, Relaxation(sigmoid, 0.25 * (number // 2), bool(number % 2))),
        (ARCHITECTURES[number % 3],),
    )
    for number, sigmoid in enumerate(SIGMOIDS)
}


def kernel(case):
    straight = codelets.STRAIGHT_LINE
    codelets.STRAIGHT_LINE = 0 if case.tabled else straight
    try:
        return Kernel(compile_network(case.request).package.files)
    finally:
        codelets.STRAIGHT_LINE = straight


def elf_end(binary):
    """Return the end of the last of an ELF file's header, tables, sections and segments."""
    (phoff, shoff), (ehsize, phentsize, phnum, shentsize, shnum) = (
        struct.unpack_from("<2Q", binary, 32),
        struct.unpack_from("<5H", binary, 52),
    )
    ends = [ehsize, phoff + phnum * phentsize, shoff + shnum * shentsize]
    for index in range(shnum):
        kind, offset, size = struct.unpack_from("<4xI16x2Q", binary, shoff + index * shentsize)
        ends.append(0 if kind == 8 else offset + size)  # SHT_NOBITS takes no bytes of the file
    for index in range(phnum):
        offset, size = struct.unpack_from("<8xQ16xQ", binary, phoff + index * phentsize)
        ends.append(offset + size)
    return max(ends)


def compiled(case, architecture):
    """Return the results of a compilation: warnings, functions with their resources, lengths."""
    package = kernel(case)
    cubin, log = nvrtc.find_nvrtc(package, architecture).compiled(package.sources["cuda"])
    return {
        "warnings": [line for line in log.splitlines() if "warning" in line],
        "resources": {name: vars(resources) for name, resources in nvrtc.resources(log).items()},
        "longest codelet": int(re.search(r"longest_codelet = (\d+)", package.sources["cuda"])[1]),
        "length": len(cubin),
        "end": elf_end(cubin),
        "states its facts": package.facts["cuda"].encode() in cubin,
    }


def main(libraries):
    for library in libraries:
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    results = {
        name: {architecture: compiled(case, architecture) for architecture in case.architectures}
        for name, case in CASES.items()
    }
    print(json.dumps({"version": nvrtc._nvrtc().getVersion(), "cases": results}))


if __name__ == "__main__":
    main(sys.argv[1:])

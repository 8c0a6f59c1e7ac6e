"""`python compiled.py PART [LIBRARY…]`: prints NVRTC's results for part 0 or 1 of the cases, as JSON.

The libraries are loaded first, so that CuPy takes their NVRTC instead of the newest that it finds. A process
has one NVRTC, so each version needs a process of its own. A part is every second case.
"""

from __future__ import annotations

import ctypes
import json
import re
import struct
import sys
from dataclasses import dataclass, replace

import torch

from nsc.compiler.driver import compile_network
from nsc.compiler.exact.compiling import compile_exact
from nsc.compiler.network import Network
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.request import Request
from nsc.compiler.schedule.cutting import STRAIGHT_LINE
from nsc.compiler.selection import top_k
from nsc.contract.exact import for_element
from nsc.runtime.build import nvrtc
from nsc.runtime.devices.launches import SHARED_KIB, exact_launches
from nsc.runtime.relaxed.cubin import compiler_of
from nsc.runtime.relaxed.kernel import Kernel

BOTH = ("float32", "float64")


@dataclass(frozen=True)
class Case:
    """A kernel and its architecture.

    Attributes:
        request: the request that it is compiled from.
        architecture: such as sm_90.
    """

    request: Request
    architecture: str

    @property
    def is_tabled(self):
        """Whether all of its codelets run from tables."""
        return self.request.straight_line == 0


def request(network, n, relaxation=None, select=None, straight_line=STRAIGHT_LINE):
    relaxation = relaxation or Relaxation()
    return Request(network, n, relaxation, BOTH, ("cuda",), select=select, straight_line=straight_line)


# Straight-line code and tables for several architectures; each sigmoid and form in one of the texts.
CASES = {
    "straight, sm_80": Case(request("bitonic", 4), "sm_80"),
    "straight, sm_90": Case(request("bitonic", 4, Relaxation("gaussian", 0.25, True)), "sm_90"),
    "straight, sm_120": Case(request("bitonic", 4, Relaxation("reciprocal", 0.5)), "sm_120"),
    "a selection, tabled, sm_80": Case(
        request("bitonic", 4, Relaxation("optimal", 0.4, True), top_k(1), straight_line=0), "sm_80"
    ),
    "a selection, tabled, sm_120": Case(
        request("bitonic", 4, Relaxation("cauchy", 0.75), top_k(1), straight_line=0), "sm_120"
    ),
    "a selection, straight, sm_90": Case(
        request("bitonic", 4, Relaxation("hard", 0.0, True), top_k(1)), "sm_90"
    ),
    "no comparator, sm_90": Case(request(Network.from_layers(1, []), 1), "sm_90"),
    "tiles of many warps, tabled, sm_90": Case(request("odd_even", 66, straight_line=0), "sm_90"),
}
assert {case.request.relaxation.sigmoid for case in CASES.values()} == set(SIGMOIDS)

# Exact kernels: values of a sample, their type and the architecture. Both ways to run, items of all kinds.
EXACT_CASES = {
    "exact float32, sm_80": (8, "float32", "sm_80"),
    "exact uint8, sm_120": (8, "uint8", "sm_120"),
    "exact uint64, sm_90": (8, "uint64", "sm_90"),
    "exact bfloat16, tabled, sm_90": (160, "bfloat16", "sm_90"),
}


def cases(part):
    """Return every second case, for float32 and float64 in turn."""
    return {
        name: replace(case, request=replace(case.request, dtypes=(BOTH[number // 2 % 2],)))
        for number, (name, case) in enumerate(CASES.items())
        if number % 2 == part
    }


def exact_cases(part):
    return dict(list(EXACT_CASES.items())[part::2])


def kernel(case):
    return Kernel(compile_network(case.request).package.files)


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


def compiled(case):
    """Return the results of a compilation: warnings, functions with their resources, lengths."""
    package = kernel(case)
    cubin, log = compiler_of(package, case.architecture).compiled(package.sources["cuda"])
    longest = int(re.search(r"longest_codelet = (\d+)", package.sources["cuda"])[1])
    return results(cubin, log, package.manifest.stated("cuda")) | {"longest codelet": longest}


def results(cubin, log, stated):
    return {
        "warnings": [line for line in log.splitlines() if "warning" in line],
        "resources": {name: vars(resources) for name, resources in nvrtc.resources(log).items()},
        "length": len(cubin),
        "end": elf_end(cubin),
        "states its facts": stated.encode() in cubin,
    }


def compiled_exact(n, dtype, architecture):
    """Return the results of a compilation of an exact kernel, as `compiled` does."""
    source = compile_exact(n)
    launches = exact_launches(source, getattr(torch, dtype).itemsize, SHARED_KIB[architecture] << 10)
    compiler = replace(nvrtc.find_nvrtc(architecture), defines=launches.defines)
    return results(*compiler.compiled(for_element(source.texts["cuda"], dtype)), source.facts)


def main(part, *libraries):
    for library in libraries:
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    answers = {name: compiled(case) for name, case in cases(int(part)).items()}
    answers |= {name: compiled_exact(*case) for name, case in exact_cases(int(part)).items()}
    print(json.dumps({"version": nvrtc._nvrtc().getVersion(), "cases": answers}))


if __name__ == "__main__":
    main(*sys.argv[1:])

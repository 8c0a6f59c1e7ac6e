"""nsc, the compiler for sorting networks.

    op = nsc.compile("bitonic", n=1024)  # prove a network
    op = nsc.load("generated/bitonic_1024")  # the operator in a folder that `nsc compile` wrote
    values, P = op.sort_with_permutation(x)
    largest = nsc.compile("best", n=1024, select=nsc.top_k(8))

Names are imported on first use: only those of operators, `nsc.nn` and `nsc.compat` need torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from nsc.errors import (
    BuildError,
    DeviceError,
    LoweringError,
    NetworkError,
    NscError,
    OperandError,
    OperandTypeError,
    PackageError,
    PropertyError,
    ToolchainError,
    UnprovedError,
    VerificationError,
    WindowError,
    torch_needed,
)
from nsc.version import VERSION

if TYPE_CHECKING:
    from nsc import compat, nn, numpy
    from nsc.api import compile
    from nsc.compiler.network import Network
    from nsc.compiler.optimize import Optimized
    from nsc.compiler.relaxations import Relaxation
    from nsc.compiler.selection import Selection, median, ranks, top_k
    from nsc.compiler.verify import Proof, Verdict
    from nsc.deploying import deploy
    from nsc.drawing import Explorer, draw
    from nsc.headers import c_header
    from nsc.networks import network, optimize, records, verify
    from nsc.operators.filters import Filter, compile_filter
    from nsc.operators.loading import load
    from nsc.operators.operator import Operator
    from nsc.operators.selector import Selector
    from nsc.operators.sorter import Sorter
    from nsc.runtime.dispatch.written_out import plain_torch
    from nsc.searching import search
    from nsc.sizes import Sizes, compile_sizes

__version__ = VERSION

# Public name to the module that defines it; None: the name is a module itself.
_HOMES: dict[str, str | None] = {
    "Explorer": "nsc.drawing",
    "Filter": "nsc.operators.filters",
    "Network": "nsc.compiler.network",
    "Operator": "nsc.operators.operator",
    "Optimized": "nsc.compiler.optimize",
    "Proof": "nsc.compiler.verify",
    "Relaxation": "nsc.compiler.relaxations",
    "Selection": "nsc.compiler.selection",
    "Selector": "nsc.operators.selector",
    "Sizes": "nsc.sizes",
    "Sorter": "nsc.operators.sorter",
    "Verdict": "nsc.compiler.verify",
    "c_header": "nsc.headers",
    "compat": None,
    "compile": "nsc.api",
    "compile_filter": "nsc.operators.filters",
    "compile_sizes": "nsc.sizes",
    "deploy": "nsc.deploying",
    "draw": "nsc.drawing",
    "load": "nsc.operators.loading",
    "median": "nsc.compiler.selection",
    "network": "nsc.networks",
    "nn": None,
    "numpy": None,
    "optimize": "nsc.networks",
    "plain_torch": "nsc.runtime.dispatch.written_out",
    "ranks": "nsc.compiler.selection",
    "records": "nsc.networks",
    "search": "nsc.searching",
    "top_k": "nsc.compiler.selection",
    "verify": "nsc.networks",
}

__all__ = [
    "BuildError",
    "DeviceError",
    "Explorer",
    "Filter",
    "LoweringError",
    "Network",
    "NetworkError",
    "NscError",
    "OperandError",
    "OperandTypeError",
    "Operator",
    "Optimized",
    "PackageError",
    "Proof",
    "PropertyError",
    "Relaxation",
    "Selection",
    "Selector",
    "Sizes",
    "Sorter",
    "ToolchainError",
    "UnprovedError",
    "Verdict",
    "VerificationError",
    "WindowError",
    "c_header",
    "compat",
    "compile",
    "compile_filter",
    "compile_sizes",
    "deploy",
    "draw",
    "load",
    "median",
    "network",
    "nn",
    "numpy",
    "optimize",
    "plain_torch",
    "ranks",
    "records",
    "search",
    "top_k",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nsc' has no attribute {name!r}")
    home = _HOMES[name]
    with torch_needed(f"nsc.{name}"):
        value = (
            importlib.import_module(f"nsc.{name}")
            if home is None
            else getattr(importlib.import_module(home), name)
        )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])

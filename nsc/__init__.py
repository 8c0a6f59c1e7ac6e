"""nsc, the compiler for sorting networks.

    op = nsc.compile("bitonic", n=1024)  # prove a network
    op = nsc.load("generated/bitonic_1024")  # the operator in a folder that `nsc compile` wrote
    values, P = op.sort_with_permutation(x)
    largest = nsc.compile("best", n=1024, select=nsc.top_k(8))

Names are imported on first use. Only operators, `nsc.nn` and `nsc.compat` need torch.
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
    from nsc.networks import emit, network, optimize, rank_errors, records
    from nsc.operators.filters import Filter, compile_filter
    from nsc.operators.loading import load
    from nsc.operators.operator import Operator
    from nsc.operators.selector import Selector
    from nsc.operators.sorter import Sorter
    from nsc.runtime.dispatch.ways import plain_torch
    from nsc.sizes import Sizes, compile_sizes
    from nsc.study.explorer.drawing import Explorer, draw
    from nsc.study.proofs.certificate import verify
    from nsc.study.search.running import search

__version__ = VERSION

# Public names by the modules that define them.
_HOMES = {
    "nsc.api": ("compile",),
    "nsc.compiler.network": ("Network",),
    "nsc.compiler.optimize": ("Optimized",),
    "nsc.compiler.relaxations": ("Relaxation",),
    "nsc.compiler.selection": ("Selection", "median", "ranks", "top_k"),
    "nsc.compiler.verify": ("Proof", "Verdict"),
    "nsc.deploying": ("deploy",),
    "nsc.networks": ("emit", "network", "optimize", "rank_errors", "records"),
    "nsc.operators.filters": ("Filter", "compile_filter"),
    "nsc.operators.loading": ("load",),
    "nsc.operators.operator": ("Operator",),
    "nsc.operators.selector": ("Selector",),
    "nsc.operators.sorter": ("Sorter",),
    "nsc.runtime.dispatch.ways": ("plain_torch",),
    "nsc.study.explorer.drawing": ("Explorer", "draw"),
    "nsc.study.proofs.certificate": ("verify",),
    "nsc.study.search.running": ("search",),
    "nsc.sizes": ("Sizes", "compile_sizes"),
}
_MODULES = ("compat", "nn", "numpy")

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
    "compat",
    "compile",
    "compile_filter",
    "compile_sizes",
    "deploy",
    "draw",
    "emit",
    "load",
    "median",
    "network",
    "nn",
    "numpy",
    "optimize",
    "plain_torch",
    "rank_errors",
    "ranks",
    "records",
    "search",
    "top_k",
    "verify",
]


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None and name not in _MODULES:
        raise AttributeError(f"module 'nsc' has no attribute {name!r}")
    with torch_needed(f"nsc.{name}"):
        module = importlib.import_module(home or f"nsc.{name}")
    value = module if home is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])

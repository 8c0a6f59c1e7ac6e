"""nsc, the compiler for sorting networks.

    op = nsc.compile("bitonic", n=1024)     # a network, proved and built, as a torch operator
    op = nsc.load("generated/bitonic_1024")  # what `nsc compile` wrote
    values, P = op.sort_with_permutation(x)

Names are imported on first use: `nsc verify` needs no torch.
"""

from __future__ import annotations

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
)

if TYPE_CHECKING:
    from nsc import compat, nn
    from nsc.api import compile, compile_selector, load, load_selector
    from nsc.compiler.network import Network
    from nsc.compiler.relaxations import Relaxation
    from nsc.compiler.verify import Proof, Verdict
    from nsc.operators.operator import Operator
    from nsc.operators.selector import Selector
    from nsc.operators.sorter import Sorter
    from nsc.proving import verify

__version__ = "0.1.0"

# Public name to the module that defines it; None: the name is a module itself.
_HOMES: dict[str, str | None] = {
    "Network": "nsc.compiler.network",
    "Operator": "nsc.operators.operator",
    "Proof": "nsc.compiler.verify",
    "Relaxation": "nsc.compiler.relaxations",
    "Selector": "nsc.operators.selector",
    "Sorter": "nsc.operators.sorter",
    "Verdict": "nsc.compiler.verify",
    "compat": None,
    "compile": "nsc.api",
    "compile_selector": "nsc.api",
    "load": "nsc.api",
    "load_selector": "nsc.api",
    "nn": None,
    "verify": "nsc.proving",
}

__all__ = [
    "BuildError",
    "DeviceError",
    "LoweringError",
    "Network",
    "NetworkError",
    "NscError",
    "OperandError",
    "OperandTypeError",
    "Operator",
    "PackageError",
    "Proof",
    "PropertyError",
    "Relaxation",
    "Selector",
    "Sorter",
    "ToolchainError",
    "UnprovedError",
    "Verdict",
    "VerificationError",
    "compat",
    "compile",
    "compile_selector",
    "load",
    "load_selector",
    "nn",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nsc' has no attribute {name!r}")
    home = _HOMES[name]
    value = (
        importlib.import_module(f"nsc.{name}")
        if home is None
        else getattr(importlib.import_module(home), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])

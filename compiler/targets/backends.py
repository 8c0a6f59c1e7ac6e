"""Backends: for each target the functions that make its source text, in one table.

A target is a row of `nsc.contract.targets.TARGETS`, a file of this room with the functions below, its row
here, and its template.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import Schedule
from nsc.compiler.targets import cpp, cuda
from nsc.compiler.targets.records import Header
from nsc.contract.launch import Launch
from nsc.contract.targets import TARGETS, Target


@dataclass(frozen=True)
class Backend:
    """How the source of a target is made. What `lower` returns is the target's own.

    Attributes:
        target: what is compiled for.
        lower: a schedule and a relaxation to what the target runs.
        launch: from that to the launch parameters in the manifest; None: the target has none.
        render: a header, what the kernel states of itself, what the target runs, the relaxation and the
            names of arithmetic types to the source text.
    """

    target: Target
    lower: Callable[[Schedule, Relaxation], Any]
    launch: Callable[[Any], Launch | None]
    render: Callable[[Header, str, Any, Relaxation, tuple[str, ...]], str]


BACKENDS: dict[str, Backend] = {
    "cpu": Backend(TARGETS["cpu"], cpp.lower, cpp.launch, cpp.render),
    "cuda": Backend(TARGETS["cuda"], cuda.lower, cuda.launch, cuda.render),
}

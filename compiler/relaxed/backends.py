"""Backends: for each target the functions that make its source text, in one table.

A target is a row of `nsc.contract.targets.TARGETS`, a file of this room with the functions below, its row
here, and its template.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import cpp, cuda
from nsc.compiler.schedule import Schedule
from nsc.compiler.text.records import Header
from nsc.contract.launch import Launch
from nsc.contract.targets import TARGETS, Target


@dataclass(frozen=True)
class Backend:
    """How the source of a target is made. Each target has its own type of plan, which `lower` returns.

    Attributes:
        target: what is compiled for.
        lower: from a schedule and a relaxation to the plan that the target runs.
        launch: from the plan to the launch parameters in the manifest; None: the target has none.
        render: from a header, the facts that the kernel states of itself, the plan, the relaxation and the
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

"""Targets: the kinds of machine that nsc writes kernels for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A kind of machine that kernels are compiled for.

    Attributes:
        name: as users call it.
        suffix: how its source files end, with the dot.
        devices: types of torch devices whose tensors its kernels serve.
    """

    name: str
    suffix: str
    devices: tuple[str, ...]


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("cpu", ".cpp", ("cpu",)),
        Target("cuda", ".cu", ("cuda",)),
    )
}

"""Targets: what code may be made for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What code may be made for.

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

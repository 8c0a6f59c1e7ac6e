"""The Python module of a generated package: its docstring's facts and its functions."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed.records import Module, ModuleLoss, SelectModule, SortModule
from nsc.compiler.text.records import Header
from nsc.contract.interface import REALS
from nsc.contract.routings import LOSSES
from nsc.templates import fill


def module_text(
    header: Header,
    network: Network,
    outputs: Mapping[int, int] | None,
    relaxation: Relaxation,
    dtypes: tuple[str, ...],
    targets: tuple[str, ...],
) -> str:
    """Return the text of a package's `__init__.py`.

    Args:
        header: what its docstring says of its origin.
        network: what is compiled.
        outputs: the selected wires with their ranks, in order; None: the network sorts.
        relaxation: how comparators are softened.
        dtypes: the arithmetic types, keys of REALS.
        targets: what is compiled for.
    """
    module = Module(
        **vars(header),
        counts=network.counts,
        relaxation=relaxation.describe(),
        dtypes=", ".join(dtypes),
        targets=" and ".join(targets),
        accepts=", ".join(dtype for real in dtypes for dtype in REALS[real].serves),
        n=network.n,
        size=network.size,
        depth=network.depth,
        default_steepness=f"{2 * network.depth} = 2 × depth" if network.depth else "2",
        tie_note=" in the gradient and keep their places" if relaxation.error_free else "",
    )
    if outputs is None:
        losses = tuple(ModuleLoss(loss.name, loss.sentence) for loss in LOSSES.values())
        return fill("relaxed/sort.py.j2", SortModule(module, losses))
    lines = tuple(textwrap.wrap(", ".join(map(str, outputs.values())) + ",", 96))
    return fill("relaxed/select.py.j2", SelectModule(module, lines, tuple(LOSSES)))

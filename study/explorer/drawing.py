"""Drawing a network in Python, without torch: the page of `nsc draw`, in a notebook or as a file."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nsc.arguments import path_of
from nsc.compiler.describe import Named
from nsc.compiler.formats import save
from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation, relaxation_of
from nsc.compiler.request import Request
from nsc.compiler.selection import Selection
from nsc.errors import NetworkError
from nsc.join.budget import MAX_MEMORY, budget_of
from nsc.study.explorer.facts import gather
from nsc.study.explorer.page import render_page
from nsc.version import VERSION

__all__ = ["Explorer", "draw"]


class HasNetwork(Protocol):
    """Anything with a network, such as an operator."""

    @property
    def network(self) -> Network: ...


@dataclass(frozen=True, repr=False)
class Explorer:
    """A page about one network, which a notebook shows in a frame.

    Attributes:
        title: the network in a few words.
        html: the page: one file that needs no server and no network.
        height: of the frame in a notebook, in pixels.

    >>> draw("bitonic", 4).title
    'bitonic, 4 wires'
    """

    title: str
    html: str
    height: int = 760

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all, and return its path.

        Raises:
            NetworkError: a file that cannot be written.
        """
        place = path_of("a page's file", path, NetworkError)
        save(self.html.encode(), place)
        return place

    def __repr__(self) -> str:
        return f"<Explorer: {self.title}>"

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, so that a notebook can show several."""
        return (
            f'<iframe title="{html.escape(self.title)}" srcdoc="{html.escape(self.html)}" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def draw(
    network: Named | HasNetwork,
    n: int | None = None,
    *,
    values: Sequence[float] | None = None,
    select: Selection | None = None,
    wires: Sequence[int] | None = None,
    relaxation: str | Relaxation = "logistic",
    art_lambda: float | None = None,
    error_free: bool | None = None,
    steepness: float | None = None,
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
) -> Explorer:
    """Return a page to explore a network: a diagram that runs, formats, source, bounds and the proof.

    The network need not sort: a refuted network is shown with the places where it fails.

    Args:
        network: as in `compile`, or anything with a network, such as an operator.
        n, format, index_base, select, wires, max_memory, time_limit: as in `compile`.
        values: the inputs that the page shows first, one for each wire; None: a shuffle of 1 … n.
        relaxation, art_lambda, error_free: as in `compile`; the page can change them.
        steepness: the steepness that the page shows first, in units of the inputs^(λ − 1); None: the
            default, 2 × depth, which is divided by n where `values` are 1 … n.

    Raises:
        NetworkError: no such network, more than 128 wires or 10,000 comparators, or values that are no finite
            number for each wire.
        PropertyError: ranks or wires that the network does not have.
        LoweringError: no such relaxation.

    >>> draw("bitonic", 8, values=[3, 1, 2, 0, 7, 5, 6, 4])
    <Explorer: bitonic, 8 wires>
    """
    inner = getattr(network, "network", None)
    named = inner if isinstance(inner, Network) else network
    request = Request(
        network=named,  # type: ignore[arg-type]  # describe refuses other types
        n=n,
        relaxation=relaxation_of(relaxation, art_lambda, error_free),
        version=VERSION,
        format=format,
        index_base=index_base,
        select=select,
        wires=wires,
    )
    facts = gather(request, budget_of(max_memory, time_limit), values, steepness)
    return Explorer(facts["title"], render_page(facts))

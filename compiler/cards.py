"""Cards: how results show themselves in a notebook, as a piece of HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from html import escape


class Mood(Enum):
    """The meaning of a card's colour.

    All colours read on light and on dark grounds, and the colour-blind can tell them from each other.
    """

    PLAIN = "#888888"
    GOOD = "#0072b2"
    BAD = "#d55e00"
    OPEN = "#e69f00"


def card(title: str, facts: Mapping[str, str], picture: str = "", mood: Mood = Mood.PLAIN) -> str:
    """Return a card as HTML.

    Args:
        title: the first line, as text.
        facts: names to values, as text; a value that `bits` made stays as it is.
        picture: an SVG diagram, or "".
        mood: what its colour says.
    """
    from nsc.templates import fill  # few programs show cards, and Jinja takes a while to import

    return fill(
        "notebook/card.html.j2",
        title=escape(title),
        colour=mood.value,
        facts=[
            (escape(name), value if isinstance(value, _Html) else escape(value))
            for name, value in facts.items()
        ],
        picture=picture,
    )


class _Html(str):
    """Text that is HTML."""


def bits(values: Sequence[int]) -> str:
    """Return a 0-1 input as a row of cells, wire 0 first; a one is filled."""
    cells = (
        f'<span title="wire {wire}" style="display: inline-block; width: 1.4em; text-align: center; '
        f'border: 1px solid currentColor{"; background: #d55e0055" if bit else ""}">{bit:d}</span>'
        for wire, bit in enumerate(values)
    )
    return _Html(f'<span style="font-family: monospace">{"".join(cells)}</span>')

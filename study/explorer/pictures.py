"""Pictures: a network as PNG or PDF, drawn by matplotlib."""

from __future__ import annotations

import io

from nsc.compiler.diagram import places
from nsc.compiler.network import Network
from nsc.errors import NetworkError

# Formats of pictures, by the suffix of a file.
PICTURES = {".png": "png", ".pdf": "pdf"}
# Inches between two wires and between two columns, and the longest side of a picture, of 100 dots an inch.
_ROW, _COLUMN, _LONGEST = 0.22, 0.16, 160.0
_GRAY, _BLACK, _RED = "#999999", "#000000", "#bb0000"


def picture(network: Network, format: str) -> bytes:
    """Return a picture of a network, as `diagram.svg` draws it in SVG.

    Args:
        network: the network.
        format: "png" or "pdf".

    Raises:
        NetworkError: matplotlib is missing, or the picture would be too large.
    """
    try:
        from matplotlib.collections import LineCollection
        from matplotlib.figure import Figure
    except ImportError:
        raise NetworkError(
            f"{format} is drawn by matplotlib, which is not installed: pip install matplotlib, or write "
            ".svg or .tex"
        ) from None
    placed, columns = places(network)
    width, height = (columns + 4) * _COLUMN, (network.n + 1) * _ROW
    if max(width, height) > _LONGEST:
        raise NetworkError(
            f"a picture of {network.counts} would take {width:.0f} × {height:.0f} inches, {format} takes "
            f"{_LONGEST:.0f} at most: write .svg"
        )
    figure = Figure(figsize=(max(width, 1.0), max(height, 0.5)))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(-2.4, columns + 1.6), ylim=(network.n, -1))
    axes.set_axis_off()
    axes.hlines(range(network.n), 0, columns, colors=_GRAY, linewidths=0.8)
    for wire in range(network.n):
        axes.text(-0.5, wire, str(wire), ha="right", va="center", fontsize=8)
    colours = [_RED if lo > hi else _BLACK for _, lo, hi in placed]
    axes.add_collection(LineCollection([[(x, lo), (x, hi)] for x, lo, hi in placed], colors=colours, lw=1.2))
    axes.scatter(
        [x for x, *_ in placed for _ in range(2)],
        [wire for _, *wires in placed for wire in wires],
        s=16,
        c=[colour for colour in colours for _ in range(2)],
        zorder=3,
    )
    turned = [(x, hi) for x, lo, hi in placed if lo > hi]
    axes.scatter([x for x, _ in turned], [hi + 0.35 for _, hi in turned], s=18, c=_RED, marker="^", zorder=3)
    stream = io.BytesIO()
    # No date, so that equal networks give equal bytes.
    metadata = {"CreationDate": None} if format == "pdf" else None
    figure.savefig(stream, format=format, dpi=200 if max(width, height) < 40 else 100, metadata=metadata)
    return stream.getvalue()

"""Drawing: a network as a page to explore, or as a picture.

The order of the files: facts (what a page shows), gathering (from a request to these facts), page (from facts
to HTML), pictures (PNG and PDF).
"""

from nsc.compiler.drawing.facts import Facts, Start
from nsc.compiler.drawing.gathering import MOST_COMPARATORS, MOST_WIRES, gather
from nsc.compiler.drawing.page import render_page
from nsc.compiler.drawing.pictures import PICTURES, picture

__all__ = [
    "MOST_COMPARATORS",
    "MOST_WIRES",
    "PICTURES",
    "Facts",
    "Start",
    "gather",
    "picture",
    "render_page",
]

"""Explorer: a network as a page to explore, or as a picture.

The order of the files: facts (what a page shows), gathering (from a request to these facts), page (from facts
to HTML), drawing (`nsc.draw`), pictures (PNG and PDF).
"""

from nsc.study.explorer.facts import Facts, Start
from nsc.study.explorer.gathering import MOST_COMPARATORS, MOST_WIRES, gather
from nsc.study.explorer.page import render_page
from nsc.study.explorer.pictures import PICTURES, picture

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

"""The explorers of all families as a folder of pages.

    python -m examples.explorers  # examples/output/explorers/index.html

The pages need no server.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nsc
from nsc.compiler.families import FAMILIES

OUTPUT = Path("examples/output/explorers")
_INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Families of sorting networks</title>
<style>
:root {{ color-scheme: light dark }}
body {{ margin: 0; padding: 12px 24px; font: 14px system-ui, sans-serif }}
</style>
{frame}
</html>
"""
# The frame is as high as the page in it, which says how high that is, so that nothing scrolls in it. It tells
# the page whether the site around is light or dark: a site may have a button for that.
_FRAME = """<div class="nsc-networks">
<style>
.nsc-networks nav {{ display: flex; flex-wrap: wrap; gap: 8px; margin-bottom: 12px }}
.nsc-networks nav a {{ box-sizing: border-box; min-height: 40px; padding: 9px 14px; border: 1px solid #8886;
  border-radius: 8px; color: inherit; text-decoration: none; font: 14px/20px ui-monospace, monospace }}
.nsc-networks nav a:hover {{ border-color: currentColor }}
.nsc-networks nav a[aria-current] {{ color: #fff; background: #2457c5; border-color: #2457c5 }}
.nsc-networks iframe {{ box-sizing: border-box; display: block; width: 100%; height: 860px;
  border: 1px solid #8886; border-radius: 8px }}
</style>
<nav aria-label="Networks">
{links}
</nav>
<iframe name="nsc-network" title="Explorer of {first}" src="{source}"></iframe>
<script>
(() => {{
  const root = document.currentScript.parentElement;
  const [frame, links] = [root.querySelector("iframe"), [...root.querySelectorAll("a")]];
  root.querySelector("nav").addEventListener("click", ({{ target }}) => {{
    if (!links.includes(target)) return;
    links.forEach((link) => link.removeAttribute("aria-current"));
    target.setAttribute("aria-current", "true");
    frame.title = `Explorer of ${{target.textContent}}`;
  }});
  addEventListener("message", ({{ source, data }}) => {{
    if (source !== frame.contentWindow || !(data?.nscHeight > 0)) return;
    frame.style.height = `${{data.nscHeight + 2}}px`; // and its border
  }});
  const system = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => {{
    const scheme = getComputedStyle(frame).colorScheme;
    const isDark = scheme.includes("dark") && (system.matches || !scheme.includes("light"));
    frame.contentWindow.postMessage({{ nscTheme: isDark ? "dark" : "light" }}, "*");
  }};
  frame.addEventListener("load", tell);
  system.addEventListener("change", tell);
  new MutationObserver(tell).observe(document.body, {{ attributeFilter: ["data-theme"] }});
}})();
</script>
</div>
"""


@dataclass(frozen=True)
class Shown:
    """A network to show.

    Attributes:
        label: what its link says.
        named: a name that nsc takes.
        n: the number of wires of a family; None: the name says it.
        select: what is selected; None: the network sorts.
    """

    label: str
    named: str
    n: int | None = None
    select: nsc.Selection | None = None

    @property
    def file(self) -> str:
        """The name of its page."""
        return f"{self.named}.html" if self.n is None else f"{self.named}_{self.n}.html"


def families(n: int) -> list[Shown]:
    """Return all families on n wires."""
    return [Shown(name, name, n) for name in FAMILIES]


def records() -> list[Shown]:
    """Return some networks that are smaller than those published."""
    return [
        Shown("sort of 27", "sort_27_152_13"),
        Shown("sort of 53", "sort_53_414_20"),
        Shown("median of 29", "median_29_114_15", select=nsc.median()),
        Shown("median of 41", "median_41_193_17", select=nsc.median()),
    ]


def write_pages(folder: Path, all_shown: Sequence[Shown]) -> Path:
    """Write a page for each network, and an index that shows them; return the index."""
    folder.mkdir(parents=True, exist_ok=True)
    for shown in all_shown:
        nsc.draw(shown.named, shown.n, select=shown.select).save(folder / shown.file)
    index = folder / "index.html"
    index.write_text(_INDEX.format(frame=frame(all_shown)), encoding="utf-8")
    return index


def frame(all_shown: Sequence[Shown], folder: str = "") -> str:
    """Return HTML with a link for each network and a frame in which its page is shown.

    Args:
        all_shown: the networks.
        folder: where the pages of `write_pages` lie, as a link such as "../explorers/".
    """
    first, *_ = all_shown
    links = "\n".join(
        f'<a href="{folder}{shown.file}" target="nsc-network"'
        f"{' aria-current=' + repr('true') if shown is first else ''}>{shown.label}</a>"
        for shown in all_shown
    )
    return _FRAME.format(links=links, first=first.label, source=f"{folder}{first.file}")


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description="Write explorers of all families.")
    parser.add_argument("--n", type=int, default=16, help="number of wires; default: 16")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="folder to write to")
    options = parser.parse_args()
    print(write_pages(options.out, families(options.n)))


if __name__ == "__main__":
    main()

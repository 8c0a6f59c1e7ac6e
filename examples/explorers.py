"""The explorers of all families as a folder of pages.

    python -m examples.explorers  # examples/output/explorers/index.html

The pages need no server.
"""

from __future__ import annotations

import argparse
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
_FRAME = """<div class="nsc-families">
<style>
.nsc-families nav {{ display: flex; flex-wrap: wrap; gap: 8px; margin-bottom: 12px }}
.nsc-families nav a {{ box-sizing: border-box; min-height: 40px; padding: 9px 14px; border: 1px solid #8886;
  border-radius: 8px; color: inherit; text-decoration: none; font: 14px/20px ui-monospace, monospace }}
.nsc-families nav a:hover {{ border-color: currentColor }}
.nsc-families nav a[aria-current] {{ color: #fff; background: #2457c5; border-color: #2457c5 }}
.nsc-families iframe {{ box-sizing: border-box; display: block; width: 100%; height: 860px;
  border: 1px solid #8886; border-radius: 8px }}
</style>
<nav aria-label="Families">
{links}
</nav>
<iframe name="nsc-family" title="Explorer of {first}" src="{source}"></iframe>
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


def write_pages(folder: Path, n: int) -> Path:
    """Write a page for each family on n wires, and an index that shows them; return the index."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FAMILIES:
        nsc.draw(name, n).save(folder / _file(name, n))
    index = folder / "index.html"
    index.write_text(_INDEX.format(frame=frame(n)), encoding="utf-8")
    return index


def frame(n: int, folder: str = "") -> str:
    """Return HTML with a link for each family and a frame in which its page is shown.

    Args:
        n: the number of wires.
        folder: where the pages of `write_pages` lie, as a link such as "../explorers/".
    """
    first, *_ = FAMILIES
    links = "\n".join(
        f'<a href="{folder}{_file(name, n)}" target="nsc-family"'
        f"{' aria-current=' + repr('true') if name == first else ''}>{name}</a>"
        for name in FAMILIES
    )
    return _FRAME.format(links=links, first=first, source=f"{folder}{_file(first, n)}")


def _file(name: str, n: int) -> str:
    return f"{name}_{n}.html"


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description="Write explorers of all families.")
    parser.add_argument("--n", type=int, default=16, help="number of wires; default: 16")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="folder to write to")
    options = parser.parse_args()
    print(write_pages(options.out, options.n))


if __name__ == "__main__":
    main()

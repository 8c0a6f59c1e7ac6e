"""The explorers of all families as a folder of pages.

    python -m examples.explorers  # examples/output/explorers/index.html

The pages need no server.
"""

from __future__ import annotations

import argparse
import html
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
body {{ margin: 0; display: flex; flex-direction: column; height: 100vh; font: 14px system-ui, sans-serif }}
nav {{ display: flex; gap: 4px 18px; padding: 12px 24px; flex-wrap: wrap }}
iframe {{ flex: 1; border: 0; border-top: 1px solid #8884 }}
</style>
<nav>{links}</nav>
<iframe name="explorer" title="Explorer" src="{first}"></iframe>
</html>
"""


def write_pages(folder: Path, n: int) -> Path:
    """Write a page for each family on n wires, and an index that shows them; return the index."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: f"{name}_{n}.html" for name in FAMILIES}
    for name, file in files.items():
        nsc.draw(name, n).save(folder / file)
    links = " ".join(
        f'<a href="{file}" target="explorer" title="{html.escape(FAMILIES[name].summary)}">{name}</a>'
        for name, file in files.items()
    )
    index = folder / "index.html"
    index.write_text(_INDEX.format(links=links, first=next(iter(files.values()))), encoding="utf-8")
    return index


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description="Write explorers of all families.")
    parser.add_argument("--n", type=int, default=16, help="number of wires; default: 16")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="folder to write to")
    options = parser.parse_args()
    print(write_pages(options.out, options.n))


if __name__ == "__main__":
    main()

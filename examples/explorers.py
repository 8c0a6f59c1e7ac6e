"""The explorers of all families as a folder of pages, and the pictures of the explorer in the documentation.

    python -m examples.explorers             # examples/output/explorers/index.html
    python -m examples.explorers --pictures  # docs/pictures/explorer.png and explorer-soft.png

The pages need no server. The pictures are taken in Chromium, by playwright.
"""

from __future__ import annotations

import argparse
import html
import shutil
from pathlib import Path

import nsc
from nsc.compiler.families import FAMILIES

OUTPUT = Path("examples/output/explorers")
PICTURES = Path("docs/pictures")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# What the pictures show: the wires of a bitonic network, and the state as a link of the explorer.
SHOWN = {
    "explorer.png": (16, "step=7&follow=4"),
    "explorer-soft.png": (8, "mode=soft&of=y4"),
}
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


def take_pictures(folder: Path) -> list[Path]:
    """Take the pictures of the documentation, and return their paths."""
    from playwright.sync_api import sync_playwright

    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed")
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
        for name, (n, link) in SHOWN.items():
            file = nsc.draw("bitonic", n).save(OUTPUT / f"bitonic_{n}.html")
            page.goto(f"{file.resolve().as_uri()}#{link}")
            page.wait_for_selector(".nsc-outputs .nsc-value", state="attached")
            page.screenshot(path=folder / name, full_page=True)
        browser.close()
    return [folder / name for name in SHOWN]


def main() -> None:
    """Write the pages, or take the pictures."""
    parser = argparse.ArgumentParser(description="Write explorers of all families.")
    parser.add_argument("--n", type=int, default=16, help="number of wires; default: 16")
    parser.add_argument("--out", type=Path, help="folder to write to")
    parser.add_argument("--pictures", action="store_true", help="take the documentation's pictures instead")
    options = parser.parse_args()
    if options.pictures:
        OUTPUT.mkdir(parents=True, exist_ok=True)
        for picture in take_pictures(options.out or PICTURES):
            print(picture)
    else:
        print(write_pages(options.out or OUTPUT, options.n))


if __name__ == "__main__":
    main()

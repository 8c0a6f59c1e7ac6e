"""Pages of the explorer in a headless browser, for the tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from nsc.compiler.request import Request
from nsc.compiler.verify import Budget
from nsc.study.explorer.facts import gather
from nsc.study.explorer.page import MODULES, joined_modules, render_page
from nsc.version import VERSION

ARITHMETIC = MODULES[: MODULES.index("colours")]
WIDE = {"width": 1400, "height": 900}
NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def arithmetic(browser: Browser) -> Iterator[Page]:
    """Return a page whose scripts can call the functions of the first modules by `nsc.NAME`."""
    page = browser.new_page()
    exported = (
        "makeNetwork, runExactly, neededOf, coneOf, columnsOf, runSoftly, permutationOf, ranksOf, "
        "sharesOf, crossEntropyOf, gradientOf, erfc, SIGMOIDS"
    )
    page.add_script_tag(
        type="module", content=f"{joined_modules(ARITHMETIC)}\nwindow.nsc = {{ {exported} }};"
    )
    page.wait_for_function("window.nsc")
    yield page
    page.close()


@pytest.fixture(scope="session")
def page_files(tmp_path_factory) -> Callable:
    """Return a function that writes the explorer of a network, each once."""
    folder, files = tmp_path_factory.mktemp("explorers"), {}

    def write(network, n, select, values):
        key = repr((network, n, select, values))
        if key not in files:
            facts = gather(Request(network=network, n=n, select=select, version=VERSION), Budget(), values)
            files[key] = folder / f"{len(files)}.html"
            files[key].write_text(render_page(facts), encoding="utf-8")
        return files[key]

    return write


@pytest.fixture(scope="session")
def spare_pages(browser: Browser) -> Callable[..., tuple[list, tuple[Page, list[str]]]]:
    """Return a function that takes a page with some options, and the list that it belongs to between tests.

    A page comes with a list of what it complains about. A new one costs the browser a process.
    """
    spare: dict[str, list[tuple[Page, list[str]]]] = {}

    def take(options):
        pages = spare.setdefault(repr(options), [])
        if not pages:
            page, complaints = browser.new_page(**options), []
            page.set_default_timeout(10_000)
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda asked: asked.url.startswith("file:") or complaints.append(asked.url))
            pages.append((page, complaints))
        return pages, pages.pop()

    return take


@pytest.fixture
def opened(spare_pages, page_files) -> Iterator[Callable[..., Page]]:
    """Return a function that opens the explorer of a network; no page may complain."""
    used = []

    def open_page(network, n=None, *, link="", select=None, values=None, **options) -> Page:
        options = {"viewport": WIDE, **options}
        pages, (page, complaints) = spare_pages(options)
        used.append((pages, page, complaints))
        page.set_viewport_size(options["viewport"])
        page.mouse.move(0, 0)
        # The number makes it another address, which is loaded even where only the link differs.
        page.goto(f"{page_files(network, n, select, values).as_uri()}?{next(NUMBERS)}{link}")
        return page

    yield open_page
    for pages, page, complaints in used:
        assert complaints == []
        pages.append((page, complaints))

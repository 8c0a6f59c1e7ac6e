"""Pages of the explorer in a headless browser, for the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from nsc.compiler.request import Request
from nsc.compiler.verify import Budget
from nsc.study.explorer.facts import gather
from nsc.study.explorer.page import MODULES, joined_modules, render_page
from nsc.version import VERSION

ARITHMETIC = MODULES[: MODULES.index("state")]
WIDE = {"width": 1400, "height": 900}


@pytest.fixture(scope="session")
def arithmetic(browser: Browser) -> Iterator[Page]:
    """Return a page whose scripts can call the functions of the first modules by `nsc.NAME`."""
    page = browser.new_page()
    exported = (
        "makeNetwork, runExactly, neededOf, coneOf, columnsOf, runSoftly, permutationOf, ranksOf, "
        "sharesOf, crossEntropyOf, gradientOf, erfc, SIGMOIDS, heat, signed, inkOn"
    )
    page.add_script_tag(
        type="module", content=f"{joined_modules(ARITHMETIC)}\nwindow.nsc = {{ {exported} }};"
    )
    page.wait_for_function("window.nsc")
    yield page
    page.close()


@pytest.fixture
def errors() -> list[str]:
    """Return the list of what pages of this test complain about."""
    return []


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


@pytest.fixture
def opened(browser: Browser, errors: list[str], page_files) -> Iterator[Callable[..., Page]]:
    """Return a function that opens the explorer of a network; no page may complain."""
    pages = []

    def open_page(network, n=None, *, link="", select=None, values=None, **options) -> Page:
        page = browser.new_page(**{"viewport": WIDE, **options})
        page.set_default_timeout(10_000)
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith("file:") or errors.append(asked.url))
        page.goto(f"{page_files(network, n, select, values).as_uri()}{link}")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert errors == []

"""Pages of the explorer in a headless browser, for the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from nsc.compiler.request import Request
from nsc.compiler.verify import Budget
from nsc.study.explorer import Start, gather, render_page
from nsc.study.explorer.page import MODULES, joined_modules
from nsc.version import VERSION

ARITHMETIC = MODULES[: MODULES.index("colours")]
WIDE = {"width": 1400, "height": 900}


@pytest.fixture(scope="session")
def arithmetic(browser: Browser) -> Iterator[Page]:
    """Return a page whose scripts can call the functions of network.mjs and soft.mjs by `nsc.NAME`."""
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


@pytest.fixture
def errors() -> list[str]:
    """Return the list of what pages of this test complain about."""
    return []


@pytest.fixture
def opened(browser: Browser, errors: list[str], tmp_path) -> Iterator[Callable[..., Page]]:
    """Return a function that opens the explorer of a network; no page may complain."""
    pages = []

    def open_page(network, n=None, *, link="", select=None, start=None, **options) -> Page:
        request = Request(network=network, n=n, select=select, version=VERSION)
        facts = gather(request, start or Start(), Budget())
        file = tmp_path / f"{len(pages)}.html"
        file.write_text(render_page(facts), encoding="utf-8")
        page = browser.new_page(**{"viewport": WIDE, **options})
        page.set_default_timeout(10_000)
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith("file:") or errors.append(asked.url))
        page.goto(f"file://{file}{link}")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert errors == []

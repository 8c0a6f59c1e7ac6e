"""Examples in docstrings and pages run as they stand; pages are narrow, and their links have targets."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from page import run, steps
from PIL import Image

import experiments
import nsc
import nsc.compat.difftopk
import nsc.compat.torchsort
import nsc.nn
import nsc.numpy
from docs.names import names_of

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / "docs" / "reference" / "python.md"
MODULES = sorted(
    module.name
    for package in (nsc, experiments)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
)
PAGES = [
    Path(name)
    for name in ("README.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
    if (ROOT / name).exists()
] + sorted(
    path.relative_to(ROOT)
    for pattern in ("docs/*.md", "docs/[!_]*/*.md", "examples/*.md")
    for path in ROOT.glob(pattern)
)
# README.md is run by test_install.py, in environments with what is required alone.
RUNNING = [page for page in PAGES if page.stem != "README" and any(steps((ROOT / page).read_text("utf-8")))]
# Pages whose commands build or search for seconds, on subjects that other tests run.
LONG = {"docs/builds.md", "docs/distributed.md", "docs/export.md", "docs/gpu.md", "docs/search.md"}
MOST_COLUMNS = 120
MOST_CODE_COLUMNS = 96  # of a page of the site, see docs/static/site.css


@pytest.mark.slow("docstrings run")
@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    examples = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert examples.failed == 0


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Let pages run in a folder of their own, in this process; the modules that they write are forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
    sys.modules.pop("generated", None)


@pytest.mark.slow("pages run")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, marks=[pytest.mark.nightly("these pages build and search")] if str(page) in LONG else []
        )
        for page in RUNNING
    ],
    ids=str,
)
def test_a_pages_shell_lines_and_python_run(page, session):
    """They run in one folder in the order of the text, as a reader would run them."""
    run(ROOT / page)
    for picture in session.glob("*.svg"):
        stored = ROOT / "docs" / "pictures" / picture.name
        assert picture.read_text("utf-8") == stored.read_text("utf-8"), f"{stored} is not what nsc draws"


@pytest.mark.slow("pages run")
def test_a_step_that_fails_fails_its_page(session):
    for text, message in (
        ("```sh\nnsc list --n 0\n```\n", "page.md:2"),
        ("```sh\nnsc list --n 4  # exit code 3\n```\n", "page.md:2"),
        ("```sh\nsl\n```\n", "none of"),
        ("```c\n/* main.c */\nint main(void) { return none; }\n```\n", "page.md:2: main.c does not compile"),
        ("\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", "line 7"),
    ):
        (session / "page.md").write_text(text)
        with pytest.raises((SystemExit, AssertionError)) as failure:
            run(session / "page.md")
        assert message in "".join(traceback.format_exception(failure.value))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pages_are_narrow(page):
    """And no prose is hidden: the site takes a line that begins with % for a comment."""
    assert not [line for line in prose(page) if line.lstrip().startswith("%")]
    wide = [number for number, line in enumerate(prose(page), 1) if len(line) > MOST_COLUMNS]
    assert not wide, f"{page}: lines {wide} are wider than {MOST_COLUMNS}"
    blocks = re.findall(
        r"^```(?:python|\{code-cell\})\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.S | re.M
    )
    assert not [line for block in blocks for line in block.splitlines() if len(line) > MOST_CODE_COLUMNS]


def test_the_index_names_every_page_once():
    """docs/index.md names the pages, and reference/python.md those of the names in Python."""
    named = []
    for index, folder in (("docs/index.md", ""), ("docs/reference/python.md", "reference/")):
        text = (ROOT / index).read_text("utf-8").partition("```{toctree}")[0]
        lines = "\n".join(re.findall(r"^(?:\||## ).*", text, re.MULTILINE))
        named += [f"{folder}{page}" for page in re.findall(r"\]\((\w[\w/-]*\.md)\)", lines)]
    pages = [str(page.relative_to("docs")) for page in PAGES if page.parts[0] == "docs"]
    assert sorted(named) == sorted({*pages} - {"index.md"})


def test_pictures_are_read_in_light_and_in_dark():
    """A picture is one of a pair, or it has no ground of its own."""
    pictures = set()
    for page in (*PAGES, *(p.relative_to(ROOT) for p in ROOT.glob("*/results/*.md"))):
        text = (ROOT / page).read_text("utf-8")
        for light in re.findall(r"<picture>\s*<source [^>]*dark\)[^>]*>\s*<img src=\"([^\"]+)", text):
            assert (ROOT / page).parent.joinpath(light.replace(".png", "-dark.png")).exists(), light
        pictures |= {(ROOT / page).parent / name for name in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text)}
        assert len(re.findall("<img", text)) == len(re.findall("<picture>", text)), page
    for picture in sorted(pictures):
        if picture.suffix == ".svg":
            text = picture.read_text("utf-8")
            assert "prefers-color-scheme:dark" in text, picture
            assert 'width="100%"' not in text, picture
        else:
            image = Image.open(picture).convert("RGBA")
            assert image.getpixel((0, 0))[3] == 0, f"{picture} has a ground"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_targets_of_links_exist(page):
    text = "\n".join(prose(page, tables=True))
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    for target in targets:
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        goal = (ROOT / page).parent / file if file else ROOT / page
        assert goal.exists(), f"{page} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(goal), f"{page} links to {target}; {goal.name} has {anchors(goal)}"


def test_measured_tables_are_those_of_the_results():
    from benchmarks.pages import pages

    for path, text in pages().items():
        assert path.read_text("utf-8") == text, "run python -m benchmarks.pages"


def test_tables_of_records_are_what_nsc_makes():
    """The networks smaller than published, and of the k largest values a few entries."""
    from benchmarks.records import PAGE, extreme, halver, selection, smaller, with_table

    page = PAGE.read_text("utf-8")
    for name, rows in (("smaller", smaller()), ("extreme", extreme())):
        assert page == with_table(page, name, "\n".join(rows)), "run python -m benchmarks.records"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines()]
    by_n = {int(row[0]): row for row in rows if len(row) == 11 and row[0].isdigit()}
    assert [*by_n] == [*range(2, 65)]
    for n, k in ((2, 2), (9, 3), (12, 6), (27, 3), (41, 8)):
        assert selection(n, k) == by_n[n][k], (n, k)
    assert selection(13, 6) == by_n[13][9]
    for n in (6, 12, 24):
        halved = halver(n)
        assert str(halved.size) == by_n[n][10]
        assert nsc.verify(halved, property=f"top-{n // 2}-set")


def public_functions():
    """Yield all that users call with its name: functions, classes, and the methods of some."""
    for module in (nsc, nsc.numpy, nsc.nn, nsc.nn.functional):
        for name in module.__all__:
            item = getattr(module, name)
            if not inspect.ismodule(item) and not (inspect.isclass(item) and issubclass(item, Exception)):
                yield f"{module.__name__}.{name}", item
    for owner in (nsc.Sorter, nsc.Selector, nsc.Network, nsc.Proof, nsc.Filter):
        for name, item in vars(owner).items():
            item = item.__func__ if isinstance(item, classmethod) else item
            if inspect.isfunction(item) and not name.startswith("_"):
                yield f"{owner.__name__}.{name}", item


def test_every_public_function_has_an_example():
    assert [name for name, item in public_functions() if ">>> " not in (item.__doc__ or "")] == []


def test_the_reference_has_every_public_name():
    """On one page of its own, and by that page in the list of all names."""
    listed = re.findall(
        r"^## \[.*\]\((\w+)\.md\)\n\n<!-- names of (\w+) -->$", PYTHON.read_text("utf-8"), re.M
    )
    assert all(page == names for page, names in listed)
    found = [f"nsc.{name}" for page, _ in listed for name in names_of(page)]
    assert len(found) == len(set(found))
    modules = (
        nsc,
        nsc.numpy,
        nsc.nn,
        nsc.nn.functional,
        nsc.compat,
        nsc.compat.difftopk,
        nsc.compat.torchsort,
    )
    public = {
        f"{module.__name__}.{name}"
        for module in modules
        for name in module.__all__
        if not inspect.ismodule(getattr(module, name))
    }
    assert public - set(found) == set()


@pytest.mark.nightly("the site is built")
def test_the_site_is_built_without_a_warning(tmp_path, browser):
    """Its notebooks run, its links inside have targets, and its pages fit a phone."""
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "2", "--conf-dir", ROOT / "docs"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "-d", tmp_path / "trees", ROOT, tmp_path / "site"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    pages = [*(tmp_path / "site").rglob("*.html")]
    assert len(pages) > 40
    for page in pages:
        text = page.read_text("utf-8")
        loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?:[^"]*)"', text)
        assert not loaded, f"{page.name} loads {loaded}"
    phone = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
    heard = []
    phone.on("console", lambda message: heard.append((phone.url, message.text)))
    phone.on("request", lambda asked: asked.url.startswith("http") and heard.append((phone.url, asked.url)))
    for page in pages:
        if page == tmp_path / "site/index.html":  # leads on to the first page
            continue
        phone.goto(page.as_uri())
        width = phone.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{page.name} is {width} pixels wide"
    phone.close()
    assert heard == []


def prose(page, tables=False):
    """Yield a page's lines, empty in code; `tables` keeps rows of tables and addresses of links."""
    in_code = False
    for line in (ROOT / page).read_text("utf-8").splitlines():
        fence = line.lstrip().startswith("```")
        in_code ^= fence
        is_hidden = in_code or fence or (not tables and line.startswith("|"))
        text = "" if is_hidden else line
        # A line break may split the words of a link, but not its address.
        yield text if tables else re.sub(r"\]\([^)]*\)", "]", text)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = [line.lstrip("#").strip() for line in prose(page) if re.match("#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

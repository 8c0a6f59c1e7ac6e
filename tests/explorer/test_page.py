"""The explorer in a browser: it loads, runs, steps, follows, relaxes and keeps its state in a link."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import nsc
from examples.explorers import families, write_pages
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import writable
from nsc.compiler.network import Network
from nsc.compiler.selection import median, top_k

pytestmark = pytest.mark.slow("a browser is started")

# The first and another family.
TWO = [shown for shown in families(4) if shown.label in ("odd_even", "best")]
BROKEN = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)]])
START = (3.0, 1.0, 2.0, 0.0, 7.0, 5.0, 6.0, 4.0)

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


def outputs(page):
    return page.locator(".nsc-outputs .nsc-value").all_text_contents()


def inputs(page):
    return page.locator(".nsc-inputs .nsc-value").all_text_contents()


def colours(page):
    """Return the colour of each comparator."""
    return page.locator(".nsc-comparators path").evaluate_all(
        "(all) => all.map((path) => path.getAttribute('color'))"
    )


def settled(page):
    """Wait until the state is shown and the link holds it."""
    page.wait_for_timeout(330)


def shown(page):
    """Wait until the state is shown."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def choose(page, name, value):
    page.get_by_label(name, exact=True).select_option(value)
    shown(page)


def slide(page, label, value):
    """Move a slider to a share of its width."""
    page.get_by_label(label, exact=True).evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )
    shown(page)


@pytest.mark.parametrize("n", [1, 64])
def test_it_draws_and_sorts(opened, n):
    page = opened("bitonic", n)
    network = FAMILIES["bitonic"](n)
    assert page.title() == f"bitonic, {n} wire{'' if n == 1 else 's'} – nsc"
    assert page.locator(".nsc-comparators path").count() == network.size
    assert page.locator(".nsc-wires path").count() == n + 2 * network.size
    assert outputs(page) == [str(value + 1) for value in range(n)]
    for mode in ("0-1", "Soft", "Exact"):
        page.get_by_role("radio", name=mode, exact=True).click()
        shown(page)
    for tab in ("Formats", "Code", "Bounds", "Proof", "Explore"):
        page.get_by_role("radio", name=tab, exact=True).click()
        shown(page)
        assert page.locator(".nsc-panel:visible").count() == 1
    page.get_by_role("button", name="Larger").click()
    shown(page)
    assert page.locator(".nsc-chip.wrong").count() == 0


def test_values_are_typed_dragged_and_nudged(opened):
    page = opened("bitonic", 8, values=START)
    assert inputs(page) == ["3", "1", "2", "0", "7", "5", "6", "4"]
    field = page.get_by_label("Input values, one for each wire")
    field.fill("8 7 6 5 4 3 2 -1.5")
    shown(page)
    assert outputs(page) == ["−1.5", "2", "3", "4", "5", "6", "7", "8"]
    # The page's own minus, and lists as Python prints them.
    for typed in ("−1.5 2 3 4 5 6 7 8", "[8, 7, 6, 5, 4, 3, 2, -1.5]", "(8, 7, 6, 5, 4, 3, 2, −1.5)"):
        field.fill("1 1 1 1 1 1 1 1")
        field.fill(typed)
        shown(page)
        assert outputs(page) == ["−1.5", "2", "3", "4", "5", "6", "7", "8"], typed
    field.fill("3,1,2,0,7,5,6,4")
    chip = page.locator(".nsc-inputs .nsc-chip").nth(4)
    box = chip.locator(".nsc-box").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 100, y, steps=5)
    page.mouse.up()
    shown(page)
    assert float(inputs(page)[4]) < 7
    page.mouse.dblclick(x, y)
    page.get_by_label("Value of input 4").fill("100")
    page.keyboard.press("Enter")
    shown(page)
    assert outputs(page)[-1] == "100"
    chip.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    shown(page)
    assert float(inputs(page)[3]) > 0
    assert page.evaluate("document.activeElement.dataset.wire") == "3"


def test_a_step_of_a_large_value_keeps_its_digits(opened):
    values = [1234567890123.0 + wire for wire in range(4)]
    page = opened("bitonic", 4, values=values)
    page.locator(".nsc-inputs .nsc-chip").nth(0).focus()
    page.keyboard.press("ArrowRight")
    shown(page)
    field = page.get_by_label("Input values, one for each wire").input_value()
    assert [*map(float, field.split(","))] == [1234567890123.1, *values[1:]]


def test_fingers_flip_drag_and_follow(opened):
    page = opened("bitonic", 8, values=START, has_touch=True, viewport={"width": 390, "height": 800})
    touch = page.context.new_cdp_session(page)
    box = page.locator(".nsc-inputs .nsc-chip").nth(4).locator(".nsc-box").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for step in range(10):
        kind = {0: "touchStart", 9: "touchEnd"}.get(step, "touchMove")
        points = [] if kind == "touchEnd" else [{"x": x + 7 * step, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    shown(page)
    assert float(inputs(page)[4]) > 7
    page.get_by_role("radio", name="0-1", exact=True).click()
    shown(page)
    bit = inputs(page)[0]
    page.locator(".nsc-inputs .nsc-chip").nth(0).tap()
    shown(page)
    assert inputs(page)[0] != bit
    # On the wire between the first two layers, far enough from the inputs to be no touch of one.
    page.touchscreen.tap(box["x"] + box["width"] + 32, box["y"] + box["height"] / 2)
    shown(page)
    assert page.get_by_label("Item to follow").input_value() == "4"


def test_steps_go_through_the_layers(opened):
    page = opened("bitonic", 8, values=START)
    network = FAMILIES["bitonic"](8)
    page.get_by_role("button", name="To the inputs").click()
    shown(page)
    assert outputs(page) == inputs(page)
    values = list(START)
    for layer in network.layers():
        page.get_by_role("button", name="Step", exact=True).click()
        shown(page)
        values = Network.from_layers(8, [layer]).apply(values).tolist()
        assert [*map(float, outputs(page))] == values
    assert page.locator("[aria-live]").text_content().startswith("After 6 of 6 layers: 0, 1, 2")
    page.locator("h1").click()
    page.keyboard.press("Home")
    shown(page)
    page.keyboard.press("ArrowRight")
    shown(page)
    assert page.locator(".nsc-where").text_content() == "after 1 of 6 layers"
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    page.get_by_role("button", name="Pause").wait_for()
    page.locator(".nsc-where").get_by_text("after 6 of 6 layers").wait_for()
    page.get_by_role("button", name="Play").wait_for()


def test_an_item_is_followed(opened):
    page = opened("bitonic", 8, values=START)
    page.locator(".nsc-inputs .nsc-chip").nth(4).click()
    shown(page)
    network = FAMILIES["bitonic"](8)
    paths = page.locator(".nsc-wires path.on")
    # Every comparator on the path of an item ends one segment and begins another.
    state, touched = list(START), 0
    wire = 4
    for layer in network.layers():
        state = Network.from_layers(8, [layer]).apply(state).tolist()
        touched += any(wire in pair for pair in layer.tolist())
        wire = state.index(7.0)
    assert paths.count() == 1 + touched
    assert page.locator(".nsc-outputs .nsc-chip.followed").get_attribute("data-wire") == "7"
    page.keyboard.press("Escape")
    shown(page)
    assert paths.count() == 0
    choose(page, "Item to follow", "3")
    assert page.locator(".nsc-outputs .nsc-chip.followed").get_attribute("data-wire") == "0"
    page.get_by_role("radio", name="Soft", exact=True).click()
    shown(page)
    assert paths.count() > 0


def test_a_counterexample_is_shown_where_it_breaks_and_mended(opened):
    page = opened(BROKEN)
    page.get_by_role("radio", name="Proof", exact=True).click()
    assert "insert (1, 2) behind layer 1" in page.locator(".nsc-proof").text_content()
    page.get_by_role("button", name="Show in the diagram").click()
    shown(page)
    assert inputs(page) == ["0", "1", "0", "1"]
    assert outputs(page) == ["0", "1", "0", "1"]
    wrong = page.locator(".nsc-outputs .nsc-chip.wrong")
    assert [node.get_attribute("data-wire") for node in wrong.all()] == ["1", "2"]
    assert page.locator(".nsc-bands rect.failing").count() == 1
    assert page.locator(".nsc-comparators path.mend").count() == 1
    page.get_by_role("button", name="Mend it").click()
    shown(page)
    assert outputs(page) == ["0", "0", "1", "1"]
    assert wrong.count() == 0
    page.get_by_role("button", name="Take the mend out").click()
    page.locator(".nsc-inputs .nsc-chip").nth(0).click()
    shown(page)
    assert inputs(page) == ["1", "1", "0", "1"]
    page.get_by_role("radio", name="Exact", exact=True).click()
    page.get_by_role("button", name="Failing input").click()
    shown(page)
    assert outputs(page) == ["0", "2", "1", "3"]
    page.get_by_role("radio", name="Code", exact=True).click()
    shown(page)
    assert "writes no code" in page.locator(".nsc-panel:visible").text_content()


def test_layers_are_the_networks_beside_a_mend_in_front(opened):
    """A mend that is shown but does not work is no layer of the network."""
    page = opened(Network.from_layers(4, [[(0, 1)], [(0, 2), (1, 3)], [(1, 2)]]))
    assert "last touched in layer 2" in page.locator(".nsc-notice").text_content()

    def told(index):
        box = page.locator(".nsc-comparators path").nth(index).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        return page.locator(".nsc-stage-host .nsc-tip").text_content().splitlines()[0]

    mend, *others = map(told, range(5))
    assert mend == "comparator (2, 3)"
    assert [words.rsplit(maxsplit=1)[1] for words in others] == ["0", "1", "1", "2"]
    page.get_by_role("button", name="Mend it").click()
    shown(page)
    assert [told(index).rsplit(maxsplit=1)[1] for index in (0, 4)] == ["0", "3"]


def test_a_network_that_does_not_sort_is_not_praised(opened):
    page = opened(Network.from_layers(4, [[(0, 1), (2, 3)], [(0, 1), (2, 3)], [(0, 2)]]), link="#tab=bounds")
    assert "No sorter has fewer" not in page.locator(".nsc-bounds").text_content()
    page = opened("best", 4, link="#tab=bounds")
    assert page.locator(".nsc-bounds").get_by_text("No sorter has fewer").count() == 2
    assert "best" in page.locator("tr.own td:first-child").all_text_contents()


def test_chosen_ranks_leave_halves_and_dead_comparators(opened):
    page = opened("best", 16)
    field = page.get_by_label("Chosen ranks")
    field.fill("median")
    shown(page)
    halves, dead = page.locator("path.half").count(), page.locator("path.dead").count()
    assert halves > 0
    assert dead > 0
    whole = FAMILIES["best"](16).size - halves - dead
    assert f"{whole} whole, {halves} half, {dead} dead" in page.locator(".nsc-legend").text_content()
    assert page.locator(".nsc-outputs .nsc-chip.unwanted").count() == 14
    assert page.get_by_text("The median is the mean of ranks 7 and 8.").count() == 1
    page.get_by_role("button", name="All", exact=True).click()
    shown(page)
    assert page.locator("path.half, path.dead").count() == 0


def test_a_selection_begins_with_its_ranks(opened):
    page = opened("best", 16, select=top_k(3))
    assert page.get_by_label("Chosen ranks").input_value() == "13, 14, 15"
    assert outputs(page)[-3:] == ["14", "15", "16"]
    choose(page, "Colour of comparators", "codelets")
    assert re.search(r" codelets?$", page.locator(".nsc-where").text_content())
    page = opened("bitonic", 9, select=median())
    assert page.locator(".nsc-chip.wrong").count() == 0


def test_codelets_run_one_behind_the_other(opened):
    page = opened("bitonic", 64)
    choose(page, "Colour of comparators", "codelets")
    assert len({*colours(page)}) == 6
    page.get_by_role("button", name="To the inputs").click()
    page.get_by_role("button", name="Step", exact=True).click()
    shown(page)
    assert re.fullmatch(r"after 1 of \d+ codelets", page.locator(".nsc-where").text_content())
    ran = page.locator(".nsc-comparators path:not(.later)").count()
    assert 0 < ran < FAMILIES["bitonic"](64).size
    choose(page, "Colour of comparators", "cone")
    choose(page, "Columns of P", "2")
    assert len({*colours(page)}) == 3  # in the cone, run with it, skipped


def test_sliders_soften_the_network(opened):
    page = opened("bitonic", 8, values=START)
    page.get_by_role("radio", name="Soft", exact=True).click()
    shown(page)
    heat = page.get_by_role("img", name="Relaxed permutation matrix")
    assert "Row sums 1 to 1, column sums 1 to 1" in heat.get_attribute("aria-label")
    slide(page, "Steepness", 0)
    soft = [*map(float, outputs(page))]
    slide(page, "Steepness", 1)
    hard = [*map(float, outputs(page))]
    assert max(soft) - min(soft) < max(hard) - min(hard)
    assert hard == pytest.approx(range(8), abs=0.01)
    slide(page, "ART λ", 0)
    assert page.get_by_label("ART λ, number").input_value() == "0"
    page.get_by_label("Steepness, number").fill("2.5")
    page.keyboard.press("Enter")
    choose(page, "Relaxation", "cauchy")
    page.get_by_role("radio", name="Gradient", exact=True).click()
    choose(page, "Gradient of", "loss")
    assert "Cross entropy of P and the true ranks: " in page.locator(".nsc-side").text_content()
    page.locator(".nsc-outputs .nsc-chip").nth(2).click()
    shown(page)
    assert page.get_by_label("Gradient of", exact=True).input_value() == "y2"
    heat.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("[aria-live]").text_content().startswith("output 0 takes ")
    page.keyboard.press("Enter")
    shown(page)
    assert page.get_by_label("Gradient of", exact=True).input_value() == "p0.1"
    settled(page)
    link = page.evaluate("location.hash")
    assert {"mode=soft", "lambda=0", "steepness=2.5", "relaxation=cauchy", "show=gradient", "of=p0.1"} <= {
        *link[1:].split("&")
    }
    page.get_by_role("radio", name="Error-free", exact=True).click()
    settled(page)
    assert outputs(page) == [*map(str, range(8))]
    assert "form=error-free" in page.evaluate("location.hash")
    page.get_by_role("button", name="Defaults").click()
    shown(page)
    assert outputs(page) != [*map(str, range(8))]


def test_a_link_holds_the_state(opened):
    link = (
        "#mode=soft&x=1,5,2,8,3,7,4,6&step=3&follow=2&ranks=5,6,7&paint=cone&block=3&relaxation=gaussian&lambda=0.5"
        "&steepness=0.7&form=error-free&show=gradient&of=p2.5&format=knuth&source=C%2B%2B"
    )
    page = opened("bitonic", 8, link=link)
    settled(page)
    assert page.evaluate("location.hash") == link
    assert page.locator(".nsc-where").text_content() == "after 3 of 6 layers"
    page.goto(page.url.partition("#")[0])
    page.evaluate("location.hash = 'mode=bits&bits=00110011&tab=bounds'")
    shown(page)
    assert page.get_by_role("radio", name="Bounds", exact=True).is_checked()


def test_hostile_links_are_passed_over(opened):
    page = opened("bitonic", 8)
    for link in (
        "mode=<script>alert(1)</script>&x=1,2&step=-1&follow=99&ranks=0,0,9&steepness=1e400&lambda=2&of=y99",
        "tab=__proto__&constructor=1&__proto__=2&toString=3&paint=what&block=77&format=%E0%A4%A&bits=012",
        "x=" + "9," * 30000,
        "%%%&&&===&step=9999&mended=1&source=&steepness=0",
    ):
        page.evaluate("(link) => { location.hash = link; }", link)
        shown(page)
        assert outputs(page) == ["1", "2", "3", "4", "5", "6", "7", "8"], link
        assert page.locator("script").count() == 2


def test_hostile_files_are_text(opened, tmp_path):
    file = tmp_path / "<!--<script>alert(1)<\\script>&quot; {{ 7 }}'\".json"
    file.write_text(
        json.dumps({"format": "nsc-network/1", "n": 2, "layers": [[[0, 1]]], "comment": "</script>"})
    )
    page = opened(str(file))
    assert page.locator("script").count() == 2
    assert "<!--<script>alert(1)" in page.locator("h1").text_content()
    assert outputs(page) == ["1", "2"]
    for tab in ("Formats", "Code", "Proof"):
        page.get_by_role("radio", name=tab, exact=True).click()


def test_texts_are_those_of_nsc(opened):
    page = opened("bitonic", 8)
    page.get_by_role("radio", name="Formats", exact=True).click()
    assert page.locator(".nsc-names:visible label").all_text_contents() == [*writable()]
    page.get_by_role("radio", name="cn", exact=True).click()
    shown(page)
    assert page.locator("pre:visible").text_content().startswith("0:1,")
    page.get_by_role("radio", name="Code", exact=True).click()
    for language, line in (("C", "#include <stdint.h>"), ("C++", "// bitonic_8: "), ("CUDA", "__global__")):
        page.get_by_role("radio", name=language, exact=True).click()
        shown(page)
        text = page.locator("pre:visible").text_content()
        assert line in text
        assert "--unproved" not in text
    page.get_by_role("radio", name="Bounds", exact=True).click()
    shown(page)
    assert "5 more than the best known" in page.locator(".nsc-panel:visible").text_content()
    with page.expect_download() as download:
        page.get_by_role("radio", name="Formats", exact=True).click()
        page.get_by_role("button", name="Save").locator("visible=true").click()
    assert download.value.suggested_filename == "bitonic_8.cn"


def test_keys_zoom_and_name_themselves(opened):
    page = opened("odd_even", 32)
    width = "document.querySelector('.nsc-world').clientWidth"
    before = page.evaluate(width)
    page.keyboard.press("+")
    assert page.evaluate(width) == pytest.approx(1.4 * before, rel=0.01)
    scrolled = page.evaluate("document.querySelector('.nsc-stage').scrollLeft")
    page.mouse.move(600, 400)
    page.mouse.down()
    page.mouse.move(500, 350, steps=3)
    page.mouse.up()
    assert page.evaluate("document.querySelector('.nsc-stage').scrollLeft") == scrolled + 100
    page.keyboard.press("0")
    assert page.evaluate(width) == before
    page.keyboard.press("3")
    shown(page)
    assert page.get_by_role("radio", name="Soft", exact=True).is_checked()
    page.get_by_role("button", name="Keyboard and mouse").click()
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    page.get_by_role("radio", name="Explore", exact=True).focus()
    page.keyboard.press("ArrowRight")
    shown(page)
    assert page.get_by_role("radio", name="Formats", exact=True).is_checked()
    unnamed = page.evaluate(
        """[...document.querySelectorAll('button, input, select, textarea')].filter((node) =>
          !(node.getAttribute('aria-label') || node.textContent.trim() || node.labels?.length)).length"""
    )
    assert unnamed == 0


@pytest.mark.parametrize(
    ("name", "link", "first", "last"),
    [
        ("explorer", "#step=4&follow=1", ".nsc-stage-host", ".nsc-legend"),
        ("explorer-soft", "#mode=soft&of=y4", ".nsc-heat-host", ".nsc-heat-host"),
    ],
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_of_the_documentation(opened, request, name, link, first, last, theme):
    """README and the pages show the explorer as it is; --update-golden takes the pictures again.

    They are cut to what is read on a phone too.
    """
    phone = {"viewport": {"width": 520, "height": 900}, "device_scale_factor": 2}
    page = opened("bitonic", 8, link=link, color_scheme=theme, **phone)
    top, end = page.locator(first).bounding_box(), page.locator(last).bounding_box()
    clip = {
        "x": top["x"],
        "y": top["y"],
        "width": top["width"],
        "height": end["y"] + end["height"] - top["y"],
    }
    taken = page.screenshot(full_page=True, clip=clip)
    name = f"{name}{'' if theme == 'light' else '-dark'}.png"
    if request.config.getoption("--update-golden"):
        (PICTURES / name).write_bytes(taken)
    now, then = (thumbnail(picture) for picture in (taken, (PICTURES / name).read_bytes()))
    assert np.abs(now - then).mean() < 4, f"{name} is no longer what the explorer shows; see --update-golden"


def thumbnail(picture):
    """Return a picture in 64 × 64 shades of grey, in which letters of another font look alike."""
    return np.asarray(Image.open(io.BytesIO(picture)).convert("L").resize((64, 64)), dtype=float)


def test_the_families_are_embedded(browser, tmp_path):
    errors = []
    index = write_pages(tmp_path, TWO)
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.on("console", lambda message: errors.append(message.text))
    page.goto(index.as_uri())
    current = page.locator("nav [aria-current]")
    assert current.text_content() == "odd_even"
    for family in ("best", "odd_even"):
        page.get_by_role("link", name=family, exact=True).click()
        assert current.text_content() == family
        assert page.get_by_title(f"Explorer of {family}").count() == 1
        inside = page.frame_locator("iframe")
        inside.get_by_role("heading", name=f"{family}, 4 wires").wait_for()
        for tab in ("Proof", "Code", "Explore"):
            inside.get_by_role("radio", name=tab, exact=True).click()
            settled(page)
            # The page scrolls, and nothing in it does so again.
            scrolls = inside.locator("html, html *").evaluate_all(
                """(nodes) => nodes
                  .filter((node) => node.matches("html, pre, nav, textarea, dialog, .nsc-scroll, .nsc-tabs"))
                  .filter((node) => node.checkVisibility() && node.scrollHeight > node.clientHeight + 1)
                  .map((node) => node.className || node.tagName)"""
            )
            assert scrolls == [], tab
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
    assert errors == []


def test_the_families_have_the_theme_of_the_site(browser, tmp_path):
    """Its button turns it against the system's; a family that is opened later has it too."""
    errors = []
    page = browser.new_page(color_scheme="light")
    page.on("console", lambda message: errors.append(message.text))
    page.goto(write_pages(tmp_path, TWO).as_uri())
    inside = page.frame_locator("iframe")
    inside.locator(".nsc-explorer[data-theme=light]").wait_for()
    site = """([theme, schemes]) => {
        document.body.style.colorScheme = schemes;
        document.body.dataset.theme = theme;
    }"""
    page.evaluate(site, ["dark", "dark"])
    inside.locator(".nsc-explorer[data-theme=dark]").wait_for()
    page.get_by_role("link", name="best", exact=True).click()
    inside.get_by_role("heading", name="best, 4 wires").wait_for()
    inside.locator(".nsc-explorer[data-theme=dark]").wait_for()
    page.evaluate(site, ["auto", "light dark"])
    inside.locator(".nsc-explorer[data-theme=light]").wait_for()
    page.emulate_media(color_scheme="dark")
    inside.locator(".nsc-explorer[data-theme=dark]").wait_for()
    page.close()
    assert errors == []


def test_a_notebook_shows_several(browser):
    errors = []
    page = browser.new_page()
    page.on("console", lambda message: errors.append(message.text))
    frames = [nsc.draw("bitonic", 4)._repr_html_(), nsc.draw(BROKEN)._repr_html_()]
    page.set_content("".join(frames))
    for frame, title in zip(page.frames[1:], ("bitonic, 4 wires", "network, 4 wires"), strict=True):
        frame.wait_for_selector(".nsc-outputs")
        assert frame.locator("h1").text_content() == title
    page.close()
    assert errors == []

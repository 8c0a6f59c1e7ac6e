"""The explorer explains itself: positions and numbers, words, values that are pointed at, and wrong input."""

from __future__ import annotations

import re

import pytest

from nsc.compiler.network import Network

pytestmark = pytest.mark.slow("a browser is started")

BROKEN = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)]])
TURNED = Network.from_layers(3, [[(1, 0)], [(1, 2)], [(0, 1)]])
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
TABS = ("#tab=formats", "#tab=code", "#tab=bounds", "#tab=proof")
LOOKS = (
    "",
    "#mode=bits",
    "#mode=soft",
    "#mode=soft&show=gradient&of=loss",
    "#ranks=1",
    "#paint=codelets",
    "#paint=cone",
    *TABS,
)
# Words that a first visitor does not know; the one that is shown is defined on the page where it stands.
WORDS = (
    "arrowhead",
    "codelet",
    "shape",
    "light cone",
    "butterfly",
    "comparators per wire loaded",
    "half",
    "dead",
    "relaxation",
    "steepness",
    "ART λ",
    "error-free",
    "P",
)


def shown(page):
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def looked(page, links):
    """Yield each look of a page, all of its explanations open."""
    for link in links:
        page.evaluate("(link) => { location.hash = link; }", link or "#tab=explore")
        shown(page)
        page.evaluate("document.querySelectorAll('details').forEach((node) => (node.open = true))")
        yield link


def tip(page):
    """Return the lines that stand beside what is pointed at; none: nothing is."""
    page.wait_for_timeout(50)
    tips = [node for node in page.locator(".nsc-tip").all() if node.is_visible()]
    return tips[0].text_content().splitlines() if tips else []


def test_words_are_explained_and_fingers_hit_every_control(opened):
    page = opened("bitonic", 16, **PHONE)
    small = """() => [...document.querySelectorAll("button, select, summary, input, textarea, a")]
      .filter((node) => node.checkVisibility())
      .map((node) => [node.getAttribute("aria-label") || node.textContent, node.getBoundingClientRect()])
      .filter(([, box]) => box.width < 40 || box.height < 40)
      .map(([name, box]) => `${name}: ${box.width} × ${box.height}`)"""
    for link in looked(page, LOOKS):
        assert page.evaluate(small) == [], link
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, link
        panel = page.locator(".nsc-panel:visible")
        # Texts in formats and languages are not the page's own words.
        words = page.evaluate(
            """(panel) => {
          const copy = panel.cloneNode(true);
          const nodes = [...panel.querySelectorAll("*")];
          [...copy.querySelectorAll("*")].forEach((node, at) => nodes[at].checkVisibility() || node.remove());
          copy.querySelectorAll("pre, code, table, .nsc-texts").forEach((node) => node.remove());
          copy.querySelectorAll("*").forEach((node) => node.append(" "));
          return copy.textContent;
        }""",
            panel.element_handle(),
        )
        defined = {node.text_content() for node in panel.locator("dfn").all() if node.is_visible()}
        used = {word for word in WORDS if re.search(rf"(?<!\w){word}(?:s|ies)?(?!\w)", words, re.IGNORECASE)}
        assert used <= defined, link
        assert "sigmoid" not in words.lower()
        if link == "#mode=soft":
            assert {"P", "relaxation", "steepness", "ART λ", "error-free", "arrowhead"} <= defined
    page.get_by_role("button", name="Keyboard and mouse").click()
    assert page.evaluate(small) == []


def test_a_comparator_tells_its_values_to_mouse_key_and_finger(opened):
    first = ["comparator (0, 2), layer 0", "3, 2 → 2, 3"]
    page = opened(BROKEN, values=(3.0, 1.0, 2.0, 0.0), link="#mode=exact", **PHONE)
    paths = page.locator(".nsc-comparators path")
    box = paths.nth(0).bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    assert tip(page) == first
    page.mouse.move(0, 0)
    assert tip(page) == []
    page.touchscreen.tap(*middle)
    assert tip(page) == first
    assert page.get_by_label("Item to follow").input_value() == "-1"
    page.touchscreen.tap(box["x"], page.locator(".nsc-inputs .nsc-chip").nth(0).bounding_box()["y"] - 8)
    page.locator("h1").tap()
    page.locator(".nsc-inputs .nsc-chip").nth(0).tap()
    assert tip(page) == []
    # By keys: one stop of the tab key, arrows to the next one and back.
    paths.nth(0).focus()
    assert tip(page) == first
    assert page.evaluate("document.activeElement.ariaLabel") == "\n".join(first)
    for key, place in (
        ("ArrowDown", "(1, 3), layer 0"),
        ("ArrowRight", "(0, 1), layer 1"),
        ("ArrowUp", "(1, 3), layer 0"),
        ("ArrowLeft", "(0, 2), layer 0"),
        ("ArrowLeft", "(0, 2), layer 0"),
    ):
        page.keyboard.press(key)
        assert tip(page)[0] == f"comparator {place}"
    assert page.locator(".nsc-comparators [tabindex]").count() == 1
    page.keyboard.press("Tab")
    assert tip(page) == []


def test_an_entry_of_P_tells_its_value_to_mouse_key_and_finger(opened):
    page = opened("bitonic", 16, link="#mode=soft", **PHONE)
    heat = page.get_by_role("img", name="Relaxed permutation matrix")
    heat.scroll_into_view_if_needed()
    box = heat.bounding_box()
    place = box["x"] + 0.25 * box["width"], box["y"] + 0.25 * box["height"]
    entry = (
        r"output \d+ takes [\d.]+(e-\d+)? of input \d+; rank of the input [\d.]+, gradient −?[\d.]+(e-\d+)?"
    )
    page.mouse.move(*place)
    told = tip(page)
    assert re.fullmatch(entry, told[0])
    page.mouse.move(0, 0)
    assert tip(page) == []
    page.touchscreen.tap(*place)
    assert tip(page) == told
    heat.focus()
    page.keyboard.press("ArrowRight")
    assert tip(page)[0].startswith("output 0 takes ")


VALUES, RANKS = "Input values, one for each wire", "Chosen ranks"


def test_wrong_input_says_what_is_wrong(opened):
    page = opened(BROKEN)
    for mode, label, typed, told in (
        ("exact", VALUES, "1 2 3 -−8", "“-−8”, of wire 3, is no finite number"),
        ("exact", VALUES, "", "0 values found, 4 needed"),
        ("exact", VALUES, "1, 1e999, 3, 4", "“1e999”, of wire 1, is no finite number"),
        ("exact", VALUES, "1 two 3 4 5", "“two”, of wire 1, is no finite number; 5 values found, 4 needed"),
        ("bits", VALUES, "0 1 2 1", "“2” is not made of zeros and ones"),
        ("bits", VALUES, "01011", "5 digits found, 4 needed"),
        ("exact", RANKS, "0, 9", "“9” is not within the ranks 0 … 3"),
        ("exact", RANKS, "2-1", "“2-1” ends before it begins"),
        ("exact", RANKS, "top 5", "“top 5” is none of top 1 … 4, bottom 1 … 4"),
        ("exact", RANKS, "best", "“best” is none of all, median, top 3, bottom 3, or ranks such as 0, 5-7"),
        ("soft", "Steepness, number", "steep", "“steep” is no finite number: 2 stays"),
        ("soft", "Steepness, number", "1e9", "Steepness is from 0.01 to 10000: 10000 is taken"),
        ("soft", "ART λ, number", "", "nothing is typed: 0.25 stays"),
    ):
        page.evaluate("(mode) => { location.hash = `mode=${mode}&steepness=2`; }", mode)
        shown(page)
        field = page.get_by_label(label, exact=True)
        field.fill(typed)
        page.keyboard.press("Tab")
        shown(page)
        assert [text for text in page.locator(".nsc-fault").all_text_contents() if text] == [told]
        if label == "Steepness, number":
            assert field.input_value() == {"steep": "2", "1e9": "10000"}[typed]
        page.evaluate("location.hash = ''")
        shown(page)
        page.reload()


def test_a_wrong_value_of_an_input_says_what_is_wrong(opened):
    page = opened(BROKEN, link="#mode=exact&x=0,1,2,3")
    page.locator(".nsc-inputs .nsc-chip").nth(0).focus()
    page.keyboard.press("Enter")
    page.get_by_label("Value of input 0").fill("x")
    page.keyboard.press("Enter")
    assert tip(page) == ["“x” is no finite number: 0 stays"]
    assert page.locator("[aria-live=polite]").text_content() == "“x” is no finite number"


def test_digests_are_named_for_what_they_are(opened):
    page = opened(TURNED, link="#tab=proof")
    names = page.locator(".nsc-proof dt").all_text_contents()
    values = dict(zip(names, page.locator(".nsc-proof dd").all_text_contents(), strict=True))
    assert values["digest of the network"] == TURNED.digest
    assert (
        f'"canonical": "{values["digest of its canonical form"]}"' in page.locator(".nsc-json").text_content()
    )
    assert TURNED.digest not in page.locator(".nsc-json").text_content()

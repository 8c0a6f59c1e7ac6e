"""The explorer explains itself: positions and numbers, words, values that are pointed at, and wrong input."""

from __future__ import annotations

import re

import pytest

from nsc.compiler.network import Network
from nsc.study.explorer import Start

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


@pytest.mark.parametrize(("network", "n"), [("bitonic", 16), (BROKEN, None)], ids=["sorts", "broken"])
def test_fingers_hit_every_control(opened, network, n):
    page = opened(network, n, **PHONE)
    small = """() => [...document.querySelectorAll("button, select, summary, input, textarea, a")]
      .filter((node) => node.checkVisibility())
      .map((node) => [node.getAttribute("aria-label") || node.textContent, node.getBoundingClientRect()])
      .filter(([, box]) => box.width < 40 || box.height < 40)
      .map(([name, box]) => `${name}: ${box.width} × ${box.height}`)"""
    for link in looked(page, LOOKS):
        assert page.evaluate(small) == [], link
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, link
    page.get_by_role("button", name="Keyboard and mouse").click()
    assert page.evaluate(small) == []


@pytest.mark.parametrize(("network", "n"), [("bitonic", 16), (TURNED, None)], ids=["16", "turned"])
def test_words_are_explained_where_they_stand(opened, network, n):
    page = opened(network, n, **PHONE)
    for link in looked(page, LOOKS):
        panel = page.get_by_role("tabpanel")
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


def test_what_a_control_says_is_not_said_to_a_mouse_alone(opened):
    """A title is read by no finger and no key: it repeats the name of an icon, and no more."""
    page = opened("bitonic", 16)
    for link in looked(page, LOOKS):
        told = page.evaluate("""[...document.querySelectorAll(".nsc-explorer [title]")]
          .map((node) => [node.title, node.getAttribute("aria-label")])""")
        assert all(title == name for title, name in told), link


def test_a_visitor_gets_a_sentence(opened):
    page = opened("bitonic", 8, **PHONE)
    assert re.fullmatch(r"[A-Z][^.]{40,200}\.", page.locator(".nsc-lead").text_content())
    # What is told of a mode moves nothing that a finger may be about to hit.
    places = []
    for mode in ("Exact", "0-1", "Soft"):
        page.get_by_role("radio", name=mode).click()
        shown(page)
        places.append(page.locator(".nsc-stage").bounding_box())
    assert places[0] == places[1] == places[2]


@pytest.mark.parametrize("link", ["", "#mended=1"])
def test_layers_count_from_0_and_positions_lie_between_them(opened, link):
    page = opened(BROKEN, link=link)
    depth = 3 if link else 2
    named = []
    page.locator(".nsc-comparators path").first.evaluate("(node) => node.focus()")
    for node in page.locator(".nsc-comparators path").all():
        box = node.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        named += re.findall(r"layer (\d+)", tip(page)[0])
    assert [min(named), max(named)] == ["0", str(depth - 1)]
    page.get_by_role("button", name="To the inputs").click()
    for step in range(depth + 1):
        shown(page)
        assert page.locator(".nsc-where").text_content() == f"after {step} of {depth} layers"
        assert page.locator(".nsc-step").get_attribute("aria-valuetext") == f"after {step} of {depth} layers"
        if step:
            told = page.locator("[aria-live=polite]").text_content()
            assert told.startswith(f"After {step} of {depth} layers: ")
        page.get_by_role("button", name="Step", exact=True).click()
    words = page.locator(".nsc-explorer").inner_text()
    page.get_by_role("tab", name="Proof").click()
    words += page.locator(".nsc-proof").inner_text()
    assert {int(layer) for layer in re.findall(r"layer (\d+)", words)} <= {*range(depth)}


def test_a_comparator_tells_its_values_to_mouse_key_and_finger(opened):
    start = Start(values=(3.0, 1.0, 2.0, 0.0))
    first = ["comparator (0, 2), layer 0", "3, 2 → 2, 3"]
    page = opened(BROKEN, start=start, link="#mode=exact", **PHONE)
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
    # By keys: one stop of the tab key, arrows within a layer and to the next one.
    paths.nth(0).focus()
    assert tip(page) == first
    assert page.evaluate("document.activeElement.ariaLabel") == "\n".join(first)
    for key, place in (
        ("ArrowDown", "(1, 3), layer 0"),
        ("ArrowDown", "(1, 3), layer 0"),
        ("ArrowRight", "(2, 3), layer 1"),
        ("ArrowUp", "(0, 1), layer 1"),
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


@pytest.mark.parametrize(
    ("mode", "label", "typed", "told"),
    [
        ("exact", "Input values, one for each wire", "1 2 x 4", "“x”, of wire 2, is no finite number"),
        ("exact", "Input values, one for each wire", "1 2 3", "3 values found, 4 needed"),
        ("exact", "Input values, one for each wire", "1", "1 value found, 4 needed"),
        ("exact", "Input values, one for each wire", "", "0 values found, 4 needed"),
        (
            "exact",
            "Input values, one for each wire",
            "1, 1e999, 3, 4",
            "“1e999”, of wire 1, is no finite number",
        ),
        (
            "exact",
            "Input values, one for each wire",
            "1 two 3 4 five",
            "“two”, of wire 1, is no finite number; 5 values found, 4 needed",
        ),
        ("bits", "Input values, one for each wire", "0 1 2 1", "“2” is not made of zeros and ones"),
        ("bits", "Input values, one for each wire", "01011", "5 digits found, 4 needed"),
        ("exact", "Chosen ranks", "0, 9", "“9” is not within the ranks 0 … 3"),
        ("exact", "Chosen ranks", "2-1", "“2-1” ends before it begins"),
        ("exact", "Chosen ranks", "top 5", "“top 5” is none of top 1 … 4, bottom 1 … 4"),
        (
            "exact",
            "Chosen ranks",
            "0, best",
            "“best” is none of all, median, top 3, bottom 3, or ranks such as 0, 5-7",
        ),
        ("soft", "Steepness, number", "steep", "“steep” is no finite number: 2 stays"),
        ("soft", "Steepness, number", "1e9", "Steepness is from 0.01 to 10000: 10000 is taken"),
        ("soft", "ART λ, number", "", "nothing is typed: 0.25 stays"),
    ],
)
def test_wrong_input_says_what_is_wrong(opened, mode, label, typed, told):
    page = opened(BROKEN, link=f"#mode={mode}&steepness=2")
    page.get_by_label(label, exact=True).fill(typed)
    page.keyboard.press("Tab")
    shown(page)
    assert [text for text in page.locator(".nsc-fault").all_text_contents() if text] == [told]


@pytest.mark.parametrize(
    ("mode", "typed", "told"),
    [
        ("exact", "x", "“x” is no finite number: 0 stays"),
        ("bits", "7", "“7” is neither 0 nor 1: 0 stays"),
        ("bits", "", "nothing is typed: 0 stays"),
    ],
)
def test_a_wrong_value_of_an_input_says_what_is_wrong(opened, mode, typed, told):
    page = opened(BROKEN, link=f"#mode={mode}&x=0,1,2,3&bits=0101")
    page.locator(".nsc-inputs .nsc-chip").nth(0).focus()
    page.keyboard.press("Enter")
    page.get_by_label("Value of input 0").fill(typed)
    page.keyboard.press("Enter")
    assert tip(page) == [told]
    assert page.locator("[aria-live=polite]").text_content() == told.split(":")[0]


def test_digests_are_named_for_what_they_are(opened):
    page = opened(TURNED, link="#tab=proof")
    names = page.locator(".nsc-proof dt").all_text_contents()
    values = dict(zip(names, page.locator(".nsc-proof dd").all_text_contents(), strict=True))
    assert values["digest of the network"] == TURNED.digest
    assert (
        f'"canonical": "{values["digest of its canonical form"]}"' in page.locator(".nsc-json").text_content()
    )
    assert TURNED.digest not in page.locator(".nsc-json").text_content()

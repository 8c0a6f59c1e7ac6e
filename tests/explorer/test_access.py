"""The explorer for everyone: contrast, the keyboard alone, screen readers, print, and several in one page."""

from __future__ import annotations

import json

import pytest

from nsc.compiler.network import Network
from nsc.compiler.request import Request
from nsc.compiler.verify import Budget
from nsc.study.explorer.facts import gather
from nsc.study.explorer.page import MODULES, joined_modules, part
from nsc.version import VERSION

pytestmark = pytest.mark.slow("a browser is started")

BROKEN = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)]])

# The texts that are less than 4.5 times as light or dark as what they stand on, as WCAG 2 counts (1.4.3).
FAINT = """() => {
  const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const numbers = (css) => {
    const list = css.match(/[\\d.]+(?:e-?\\d+)?/g)?.map(Number) ?? [0, 0, 0, 0];
    return css.startsWith("color(") ? [...list.slice(0, 3).map((c) => 255 * c), list[3] ?? 1]
      : [list[0], list[1], list[2], list[3] ?? 1];
  };
  const over = (above, below) =>
    [0, 1, 2].map((at) => above[at] * above[3] + below[at] * (1 - above[3])).concat(1);
  const ground = (node) => {
    const own = numbers(getComputedStyle(node).backgroundColor);
    return own[3] === 1 || !node.parentElement ? own : over(own, ground(node.parentElement));
  };
  const faint = [];
  for (const node of document.querySelectorAll(".nsc-explorer *")) {
    const isText = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
    if (!isText || !node.checkVisibility({ visibilityProperty: true })) continue;
    if (node.closest(".unwanted, :disabled, .nsc-hidden, option")) continue;
    const box = node.classList.contains("nsc-value") && node.parentNode.querySelector(".nsc-box");
    let below = ground(node instanceof SVGElement ? node.closest("svg").parentElement : node);
    if (box) below = over(numbers(getComputedStyle(box).fill), below);
    const style = getComputedStyle(node);
    const above = over(numbers(node instanceof SVGElement ? style.fill : style.color), below);
    const [dark, bright] = [light(above), light(below)].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < 4.5) faint.push(`${node.textContent.slice(0, 20)}: ${ratio.toFixed(2)} on ${below}`);
  }
  return faint;
}"""

LOOKS = ("", "#mode=bits", "#mode=soft", "#mode=soft&show=gradient&of=loss", "#mended=1", "#follow=2&step=1")


def shown(page):
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def values(page, side="inputs"):
    return page.locator(f".nsc-{side} .nsc-value").all_text_contents()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_stand_out(opened, theme):
    tabs = ("#tab=formats", "#tab=bounds", "#tab=proof")
    for network, n, links in (("bitonic", 16, LOOKS[:4]), (BROKEN, None, (*LOOKS[4:], *tabs))):
        page = opened(network, n, color_scheme=theme)
        for link in links:
            page.evaluate("(link) => { location.hash = link; }", link or "#tab=explore")
            shown(page)
            assert page.evaluate(FAINT) == [], link


def test_every_stop_of_the_tab_key_has_a_name_and_an_end(opened):
    page = opened("bitonic", 8, link="#mode=soft")
    stops = []
    for _ in range(80):
        page.keyboard.press("Tab")
        stop = page.evaluate("""() => {
          const node = document.activeElement;
          if (node === document.body) return null;
          const name =
            node.getAttribute("aria-label") || node.textContent.trim() || node.labels[0].textContent;
          return [node.tagName.toLowerCase(), name, node.matches(":focus-visible")];
        }""")
        if stop is None:
            break
        stops.append(stop)
    assert stop is None
    assert all(name and is_seen for _, name, is_seen in stops)
    # The drawing itself has nothing to do for a key; its inputs and outputs have.
    assert "svg" not in {tag for tag, *_ in stops}
    assert [name.split(":")[0] for tag, name, _ in stops if tag == "g"] == [
        "Input of wire 0",
        "Output of wire 0",
    ]


def test_a_typed_value_leaves_the_focus_on_its_input(opened):
    page = opened("bitonic", 8)
    chip = page.locator(".nsc-inputs .nsc-chip").nth(2)
    chip.focus()
    for key, value in (("Enter", "42"), ("Escape", "42")):
        page.keyboard.press("Enter")
        page.keyboard.type("42" if key == "Enter" else "7")
        page.keyboard.press(key)
        shown(page)
        assert values(page)[2] == value
        assert page.evaluate("document.activeElement.dataset.wire") == "2"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.wire") == "3"


def test_screen_readers_are_told_values_as_they_are(opened):
    page = opened("bitonic", 4, values=(-5.0, 1000.0, 3.0, 2.0))
    session = page.context.new_cdp_session(page)
    session.send("Accessibility.enable")
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    sliders = [node for node in nodes if node.get("role", {}).get("value") == "slider"]
    told = {node["name"]["value"]: node["value"]["value"] for node in sliders if not node["ignored"]}
    assert [told[f"Input of wire {wire}"] for wire in range(4)] == [-5, 1000, 3, 2]
    texts = [chip.get_attribute("aria-valuetext") for chip in page.locator(".nsc-inputs .nsc-chip").all()]
    assert texts == ["−5", "1000", "3", "2"]
    page.get_by_role("radio", name="0-1", exact=True).click()
    shown(page)
    switch = page.get_by_role("switch", name="Input of wire 1: 1")
    assert switch.get_attribute("aria-checked") == "true"
    assert switch.get_attribute("aria-valuetext") is None


def test_several_stand_in_one_page(browser, tmp_path):
    errors = []
    facts = json.dumps(gather(Request(network="bitonic", n=8, version=VERSION), Budget())).replace(
        "</", r"<\/"
    )
    modules = joined_modules(MODULES)
    file = tmp_path / "two.html"
    file.write_text(
        f"<!doctype html><meta charset=utf-8><style>{part('explorer.css')}</style>"
        '<div id="a"></div><div id="b"></div><script type="module">'
        f"{modules}\nwindow.show = (id) => mount(document.getElementById(id), {facts});"
        "window.a = show('a'); window.b = show('b');</script>"
    )
    page = browser.new_page()
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    # A key that is meant for neither changes neither.
    page.keyboard.press("3")
    page.locator("#b").get_by_role("radio", name="Bounds", exact=True).click()
    shown(page)
    assert page.evaluate("[a.state().mode, b.state().mode, a.state().tab]") == ["exact", "exact", "explore"]
    # What is no longer in the page takes no keys, and leaves the link alone.
    page.evaluate("b.update({ tab: 'explore' })")
    shown(page)
    # The next one reads the link, which is written some time after the frame.
    page.wait_for_function("!location.hash.includes('bounds')")
    page.evaluate("document.getElementById('b').remove()")
    page.evaluate("window.again = show('a')")
    page.locator("#a h1").click()
    page.keyboard.press("2")
    shown(page)
    assert page.evaluate("[a.state().mode, b.state().mode, again.state().mode]") == ["exact", "exact", "bits"]
    page.close()
    assert errors == []


def test_a_narrow_phone_shows_the_chosen_tab(opened):
    page = opened("bitonic", 16, viewport={"width": 320, "height": 640})
    for choose, name in (
        (page.locator(".nsc-badge"), "Proof"),
        (page.get_by_role("radio", name="Explore", exact=True), "Explore"),
    ):
        choose.click()
        shown(page)
        tab = page.get_by_role("radio", name=name, exact=True).bounding_box()
        tabs = page.locator(".nsc-tabs").bounding_box()
        assert tab["x"] >= tabs["x"]
        assert tab["x"] + tab["width"] <= tabs["x"] + tabs["width"]

"""Catches misspelt names, values that are left over or of a wrong type, and templates that decide."""

from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest
from jinja2 import nodes

import nsc.templates
from nsc.errors import LoweringError
from nsc.templates import environment, fill, names, part

FOLDER = Path(nsc.templates.__file__).parent
TEMPLATES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.j2"))
# The parts of Jinja that lay out; all others decide.
LAYOUT = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Getattr,
    nodes.For,
    nodes.Tuple,
    nodes.If,
    nodes.Not,
    nodes.Include,
)
WHOLE = """//# a remark of the template
{{ name }}
//% if is_tall
tall
//% else
low
//% endif
//% for key, value in pairs
{{ key }}{{ value }}
//% endfor
//% for leaf in branch.leaves
{{ leaf }};
//% endfor
"""
VALUES = {
    "name": "<&>",
    "is_tall": True,
    "pairs": [("a", 3), ("b", 4)],
    "branch": SimpleNamespace(leaves=(1, 2)),
}


@pytest.fixture
def filled(monkeypatch):
    """Fill a template with a text, which may include parts by their names, with _ for the dot."""

    def fill_text(text, parts=(), **changes):
        texts = {"any.j2": text, **dict(parts)}
        monkeypatch.setattr(nsc.templates, "part", texts.__getitem__)
        forget()
        return fill("any.j2", **VALUES | changes)

    yield fill_text
    forget()


def forget():
    for function in (environment, names):
        function.cache_clear()


def test_a_template_lays_out_values(filled):
    assert filled(WHOLE) == "<&>\ntall\na3\nb4\n1;\n2;\n"


def test_an_included_part_has_the_names_of_its_place(filled):
    text = WHOLE.replace("{{ leaf }};\n", '{% include "part.j2" %}\n')
    assert filled(text, {"part.j2": "{{ leaf }} of {{ place }}\n"}, place=7).endswith("1 of 7\n2 of 7\n")


def test_a_part_without_j2_is_taken_as_it_stands(filled):
    source = "//% for x in y\n{{ braces }} {% if %}\n"
    assert filled(WHOLE + '{% include "plain.cpp" %}', {"plain.cpp": source}).endswith("2;\n" + source)


@pytest.mark.parametrize("wrong", ["{{ nmae }}", "//% if is_tal\n//% endif\n", "{{ branch.leafs }}"])
def test_a_name_that_is_not_given_is_refused(filled, wrong):
    with pytest.raises(jinja2.UndefinedError):
        filled(WHOLE + wrong)


def test_a_value_that_is_not_used_is_refused(filled):
    with pytest.raises(LoweringError, match=r"any\.j2 does not use left, over: leave it out"):
        filled(WHOLE, left=1, over=2)


@pytest.mark.parametrize("value", [1.0, True, None, [1], b"x"])
def test_only_text_and_whole_numbers_are_printed(filled, value):
    with pytest.raises(LoweringError, match="may print str and int"):
        filled(WHOLE, name=value)


def decisions(text):
    """Return the parts of a template that do more than lay out."""
    tree = environment().parse(text)
    included = {id(node.template) for node in tree.find_all(nodes.Include)}
    return [
        node
        for node in tree.find_all(nodes.Node)
        if id(node) not in included and not (isinstance(node, LAYOUT) and getattr(node, "name", "") != "loop")
    ]


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_only_lay_out(name):
    assert not decisions(part(name))


@pytest.mark.parametrize(
    "more",
    [
        "{{ name ~ name }}",
        "{{ numbers | length }}",
        "{{ numbers[0] }}",
        "{{ name.upper() }}",
        "{% set x = 1 %}",
        "{% for i in numbers %}{{ loop.index }}{% endfor %}",
        "{% if numbers == 1 %}{% endif %}",
    ],
)
def test_a_decision_is_seen(more):
    assert decisions(more)

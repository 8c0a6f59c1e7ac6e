"""The template engine lays out records, and refuses templates that do more."""

import math
import re
from dataclasses import dataclass

import pytest

from nsc.errors import LoweringError
from nsc.templates import fill


@dataclass(frozen=True)
class Leaf:
    x: str
    y: int


@dataclass(frozen=True)
class Branch:
    leaf: Leaf
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class Tree:
    name: str
    is_tall: bool
    numbers: tuple[int, ...]
    branches: tuple[Branch, ...]


TREE = Tree("<&>", True, (1, 2), (Branch(Leaf("a", 3), (Leaf("b", 4), Leaf("c", 5))),))
# Uses every field of a tree, at every level.
WHOLE = """//# a remark of the template
{{ name }}
//% if is_tall
tall
//% else
low
//% endif
//% for i in numbers
{{ i }};
//% endfor
//% for branch in branches
{{ branch.leaf.x }}{{ branch.leaf.y }}
//% for leaf in branch.leaves
{{ leaf.x }}{{ leaf.y }}
//% endfor
//% endfor
"""


def filled(text, record=TREE, **parts):
    """Fill a template with this text, which may include `parts` by their names, with _ for the dot."""
    texts = {"any.j2": text} | {name.replace("_", "."): part for name, part in parts.items()}
    return fill("any.j2", record, texts.__getitem__)


def test_a_template_lays_out_a_record():
    assert filled(WHOLE) == "<&>\ntall\n1;\n2;\na3\nb4\nc5\n"


def test_an_included_part_uses_fields_and_loop_variables():
    text = WHOLE.replace("{{ leaf.x }}{{ leaf.y }}\n", '{% include "part.j2" %}\n')
    assert filled(text, part_j2="{{ leaf.x }} {{ leaf.y }} of {{ name }}\n").endswith(
        "b 4 of <&>\nc 5 of <&>\n"
    )


def test_a_part_without_j2_is_taken_as_it_stands():
    source = "//% for x in y\n{{ braces }} {% if %}\n"
    assert filled(WHOLE + '{% include "plain.cpp" %}', plain_cpp=source).endswith("c5\n" + source)


@pytest.mark.parametrize(
    ("right", "wrong", "owner"),
    [
        ("{{ name }}", "{{ nmae }}", "Tree"),
        ("if is_tall", "if is_tal", "Tree"),
        ("branch.leaf.x", "branch.leave.x", "Branch"),
        ("branch.leaf.x", "branch.leaf.z", "Leaf"),
        ("in branch.leaves", "in branch.leafs", "Branch"),
        ("{{ leaf.y }}", "{{ leaf.z }}", "Leaf"),
    ],
)
def test_a_misspelt_field_is_refused(right, wrong, owner):
    name = re.search(r"\w+\W*$", wrong)[0].strip(" }") if "leave." not in wrong else "leave"
    with pytest.raises(LoweringError, match=rf"any\.j2, line \d+: {name} is no field of {owner}, which has"):
        filled(WHOLE.replace(right, wrong, 1))


def test_a_misspelt_field_of_an_included_part_is_refused():
    with pytest.raises(LoweringError, match=r"template part\.j2, line 2: nmae is no field of Tree"):
        filled(WHOLE + '{% include "part.j2" %}', part_j2="x\n{{ nmae }}\n")


@pytest.mark.parametrize(
    ("used", "replacement", "unused"),
    [
        ("{{ name }}", "", "Tree: name"),
        ("if is_tall", "if name", "Tree: is_tall"),
        ("{{ branch.leaf.x }}{{ branch.leaf.y }}", "", "Branch: leaf"),
        ("in branch.leaves\n{{ leaf.x }}{{ leaf.y }}", "in numbers\n{{ leaf }}", "Branch: leaves"),
        ("{{ leaf.y }}", "", "Leaf: y"),
    ],
)
def test_a_field_that_is_not_used_is_refused(used, replacement, unused):
    text = WHOLE.replace("{{ branch.leaf.y }}", "") if unused == "Leaf: y" else WHOLE
    with pytest.raises(LoweringError, match=f"does not use these fields of {unused}. Use them"):
        filled(text.replace(used, replacement))


@pytest.mark.parametrize(
    "more",
    [
        "{{ name ~ name }}",
        "{{ numbers | length }}",
        "{{ numbers[0] }}",
        "{{ 1 + 1 }}",
        "{{ name if is_tall else name }}",
        "{{ name.upper() }}",
        "{{ '{{' }}",
        "{% set x = 1 %}",
        "{% macro m() %}{% endmacro %}",
        "{% for i in numbers if i %}{% endfor %}",
        "{% for i in numbers %}{{ loop.index }}{% endfor %}",
        "{% if numbers == 1 %}{% endif %}",
        "{% include name %}",
    ],
)
def test_more_than_layout_is_refused(more):
    with pytest.raises(LoweringError, match=r"is more than layout|is no field"):
        filled(WHOLE + more)


@pytest.mark.parametrize("hole", ["{{ is_tall }}", "{{ numbers }}", "{{ branches }}"])
def test_only_text_and_whole_numbers_are_printed(hole):
    with pytest.raises(LoweringError, match="may print text and whole numbers, not"):
        filled(WHOLE + hole)


@pytest.mark.parametrize("value", [0.1, 1.0, True, False, None, math.nan, [1], {"a": 1}, b"x"])
def test_a_value_of_a_wrong_type_is_not_printed(value):
    with pytest.raises(LoweringError, match="may print str and int"):
        filled("{{ x }}{{ y }}", Leaf("a", value))


def test_a_loop_variable_hides_no_field():
    with pytest.raises(LoweringError, match="name is a name already"):
        filled(WHOLE + "//% for name in numbers\n{{ name }}\n//% endfor\n")


@pytest.mark.parametrize("name", ["relaxed/kernel.cpp.j2", "relaxed/kernel.cu.j2", "relaxed/sort.py.j2"])
def test_the_compilers_own_templates_are_checked(name):
    with pytest.raises(LoweringError, match=r"is no field of Leaf"):
        fill(name, Leaf("a", 1))

"""Templates: the text of kernels and modules with holes, and the engine that fills them.

A file that ends in .j2 has holes. All others are plain source that is included as it stands. A template lays
out what it is given: it prints names and attributes, loops over lists, chooses blocks by flags and includes
other files. Decisions are made in Python.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import jinja2
from jinja2 import meta

from nsc.errors import LoweringError


def part(name: str) -> str:
    """Return the text of a file of this room, such as "relaxed/relaxation.j2"."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def fill(template: str, /, **values: object) -> str:
    """Return a template's text with its holes filled; the same values, the same text.

    Args:
        template: a file of this room, such as "relaxed/kernel.cpp.j2".
        values: what the template names: texts, whole numbers, flags, lists, and objects with such attributes.

    Raises:
        LoweringError: a value that the template does not name, or a hole that is no text and no whole number.
        jinja2.UndefinedError: a name or an attribute that is not there.
    """
    unused = values.keys() - names(template)
    if unused:
        raise LoweringError(f"template {template} does not use {', '.join(sorted(unused))}: leave it out")
    return environment().get_template(template).render(values)


@cache
def names(template: str) -> set[str]:
    """Return the names that a template and those it includes use."""
    tree = environment().parse(_source(template))
    others = (name for name in meta.find_referenced_templates(tree) if name is not None)
    return meta.find_undeclared_variables(tree).union(*map(names, others))


@cache
def environment() -> jinja2.Environment:
    """Return the engine that reads and fills templates."""
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
        line_statement_prefix="//%",
        keep_trailing_newline=True,
        autoescape=False,
    )


def _printed(value: object) -> str:
    """Let through text and whole numbers only, so that every literal is decided in Python.

    The text of a name that is not there is an error itself.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | jinja2.Undefined):
        raise LoweringError(f"a template may print str and int, not {value!r}")
    return str(value)


def _source(name: str) -> str:
    """Return what jinja reads for a file: plain source is taken as it stands.

    The template's own remarks are dropped with their lines; jinja would leave these empty.
    """
    text = part(name)
    if not name.endswith(".j2"):
        return f"{{% raw %}}{text}{{% endraw %}}"
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//#"))

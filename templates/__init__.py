"""Templates: the text of kernels and modules with holes, and the engine that fills them.

A file that ends in .j2 has holes. All others are plain source that is included as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

import jinja2
import jinja2.meta

from nsc.errors import LoweringError


def fill(template: str, values: Mapping[str, object]) -> str:
    """Return a template's text with its holes filled; the same values, the same text.

    Args:
        template: a file of this room, such as "cpp/kernel.cpp.j2".
        values: a value for each name that the template and those it includes use, and no other.

    Raises:
        LoweringError: the names that the templates use are not the names given.
    """
    used = _names_used(template)
    if used != set(values):
        raise LoweringError(
            f"template {template} uses {sorted(used)}, was given {sorted(values)}: mend one of them"
        )
    return _environment().get_template(template).render(values)


def _names_used(template: str) -> set[str]:
    """Return the names that a template and those it includes take from outside."""
    environment = _environment()
    tree = environment.parse(_source(template))
    used = set(jinja2.meta.find_undeclared_variables(tree))
    for included in jinja2.meta.find_referenced_templates(tree):
        assert included is not None
        used |= _names_used(included)
    return used


@cache
def _environment() -> jinja2.Environment:
    def finalize(value: object) -> str:
        """Let through text and whole numbers only, so that every literal is decided in Python."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise LoweringError(f"a template may print str and int, not {value!r}")
        return str(value)

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        line_statement_prefix="//%",
        keep_trailing_newline=True,
        autoescape=False,
    )


def _source(name: str) -> str:
    """Return what jinja reads for a file: plain source is taken as it stands."""
    text = _template_text(name)
    return _without_comments(text) if name.endswith(".j2") else f"{{% raw %}}{text}{{% endraw %}}"


def _template_text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def _without_comments(text: str) -> str:
    """Drop the template's own remarks with their lines; jinja would leave these empty."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//#"))

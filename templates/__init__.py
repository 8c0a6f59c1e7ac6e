"""Templates: the text of kernels and modules with holes, and the engine that fills them.

A file that ends in .j2 has holes. All others are plain source that is included as it stands. A template lays
out what a record holds: it may print a field, loop over one, choose a block by one and include another file.
Whatever else Jinja offers is refused, so that decisions are made in Python.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import resources

import jinja2
from jinja2 import nodes

from nsc.errors import LoweringError

Read = Callable[[str], str]


def part(name: str) -> str:
    """Return the text of a file of this room, such as "relaxed/relaxation.j2"."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def fill(template: str, record: object, read: Read = part) -> str:
    """Return a template's text with its holes filled; the same record, the same text.

    Args:
        template: a file of this room, such as "relaxed/kernel.cpp.j2".
        record: a dataclass whose fields are the names in the template. A field is text, a whole number, a
            flag, another such record, or a tuple of one kind of these.
        read: what gives the text of a file by its name.

    Raises:
        LoweringError: the template and those it includes use a name that is no field, or do not use a field
            of the record or of one inside it, or do more than lay out.
    """
    _check(template, type(record), read)  # type: ignore[arg-type]
    values = {field.name: getattr(record, field.name) for field in fields(record)}  # type: ignore[arg-type]
    return _environment(read).get_template(template).render(values)


@cache
def _check(template: str, record: type, read: Read) -> None:
    """Compare the names that a template uses with the fields of the records that it is given."""
    uses = _Uses(read)
    uses.template(template, _types_of_fields(record), record)
    for owner in _records_of(record):
        left_over = [name for name in _types_of_fields(owner) if (owner, name) not in uses.fields]
        if left_over:
            raise LoweringError(
                f"template {template} does not use these fields of {owner.__name__}: {', '.join(left_over)}. "
                "Use them, or take them out of the record"
            )


class _Uses:
    """The fields of records that a template and those it includes use.

    A scope holds the type of each name that is visible: of the fields of the outermost record, whose names
    need no owner, and of loop variables.
    """

    def __init__(self, read: Read) -> None:
        self.fields: set[tuple[type, str]] = set()
        self._read = read
        self._where = ""

    def template(self, name: str, scope: Mapping[str, type], record: type) -> None:
        outer, self._where, self._record = self._where, name, record
        self._statements(_environment(self._read).parse(_source(name, self._read)).body, scope)
        self._where = outer

    def _statements(self, statements: Iterable[nodes.Node], scope: Mapping[str, type]) -> None:
        for node in statements:
            match node:
                case nodes.Output():
                    for hole in node.nodes:
                        if not isinstance(hole, nodes.TemplateData):
                            self._printed(hole, scope)
                case nodes.For(target=nodes.Name(name=name), else_=[], test=None, recursive=False):
                    if name in scope:
                        raise LoweringError(
                            f"template {self._where}, line {node.lineno}: {name} is a name already: call the "
                            "loop's variable otherwise"
                        )
                    element = self._element(node.iter, scope)
                    self._statements(node.body, {**scope, name: element})
                case nodes.If():
                    self._condition(node.test, scope)
                    for branch in (node.body, node.elif_, node.else_):
                        self._statements(branch, scope)
                case nodes.Include(template=nodes.Const(value=str(name))):
                    self.template(name, scope, self._record)
                case _:
                    raise self._refusal(node)

    def _printed(self, hole: nodes.Node, scope: Mapping[str, type]) -> None:
        kind = self._type(hole, scope)
        if kind not in (str, int):
            raise LoweringError(
                f"template {self._where}, line {hole.lineno}: it may print text and whole numbers, not {kind}"
            )

    def _element(self, node: nodes.Node, scope: Mapping[str, type]) -> type:
        kind = self._type(node, scope)
        if typing.get_origin(kind) is not tuple:
            raise LoweringError(f"template {self._where}, line {node.lineno}: no loop over {kind}")
        element: type = typing.get_args(kind)[0]
        return element

    def _condition(self, node: nodes.Node, scope: Mapping[str, type]) -> None:
        match node:
            case nodes.Not():
                self._condition(node.node, scope)
            case nodes.Compare(expr=nodes.Const(), ops=[nodes.Operand(op="in", expr=several)]):
                self._element(several, scope)
            case _:
                self._type(node, scope)

    def _type(self, node: nodes.Node, scope: Mapping[str, type]) -> type:
        """Return the type of a name or of a record's field, which counts as used."""
        match node:
            case nodes.Name(name=name):
                if name not in scope:
                    raise LoweringError(
                        f"template {self._where}, line {node.lineno}: {name} is no field of "
                        f"{self._record.__name__}, which has {', '.join(_types_of_fields(self._record))}"
                    )
                self.fields.add((self._record, name))
                return scope[name]
            case nodes.Getattr(node=inner, attr=name):
                owner = self._type(inner, scope)
                known = _types_of_fields(owner) if is_dataclass(owner) else {}
                if name not in known:
                    raise LoweringError(
                        f"template {self._where}, line {node.lineno}: {name} is no field of "
                        f"{getattr(owner, '__name__', owner)}, which has {', '.join(known) or 'none'}"
                    )
                self.fields.add((owner, name))
                return known[name]
        raise self._refusal(node)

    def _refusal(self, node: nodes.Node) -> LoweringError:
        return LoweringError(
            f"template {self._where}, line {node.lineno}: {type(node).__name__} is more than layout: "
            "decide it in Python and give the template a field"
        )


@cache
def _types_of_fields(record: type) -> dict[str, type]:
    return {field.name: typing.get_type_hints(record)[field.name] for field in fields(record)}


def _records_of(kind: type) -> set[type]:
    """Return a record's type and those of the records inside it."""
    if typing.get_origin(kind) is tuple:
        return _records_of(typing.get_args(kind)[0])
    if not is_dataclass(kind):
        return set()
    return {kind}.union(*map(_records_of, _types_of_fields(kind).values()))


@cache
def _environment(read: Read) -> jinja2.Environment:
    def finalize(value: object) -> str:
        """Let through text and whole numbers only, so that every literal is decided in Python."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise LoweringError(f"a template may print str and int, not {value!r}")
        return str(value)

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _source(name, read)),
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        line_statement_prefix="//%",
        keep_trailing_newline=True,
        autoescape=False,
    )


def _source(name: str, read: Read) -> str:
    """Return what jinja reads for a file: plain source is taken as it stands."""
    text = read(name)
    return _without_comments(text) if name.endswith(".j2") else f"{{% raw %}}{text}{{% endraw %}}"


def _without_comments(text: str) -> str:
    """Drop the template's own remarks with their lines; jinja would leave these empty."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//#"))

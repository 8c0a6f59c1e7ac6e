"""What operators and filters share: each is made of a package's files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Attribute:
    """What becomes an attribute of the module that torch.fx traces, where the graph finds it."""

    def __fx_create_arg__(self, tracer: Any) -> Any:
        """Return the attribute."""
        name = tracer.get_fresh_qualname("_operator")
        setattr(tracer.root, name, self)
        return tracer.create_node("get_attr", name, (), {})


class Packaged(Attribute):
    """Made of a package's files, by which it pickles, copies and compares.

    Args:
        spec: a name that stands for the files' content.
        files: name to text.
    """

    def __init__(self, spec: str, files: Mapping[str, str]) -> None:
        self._spec = spec
        self._files = files

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._spec == other._spec

    def __hash__(self) -> int:
        return hash(self._spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self._files),)

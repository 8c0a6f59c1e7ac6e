"""Check: the outcome of running a built kernel. Claim: what a package says, with the check of its kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Emitted, Property


@dataclass(frozen=True)
class Check:
    """The outcome of running one part of a built kernel on some inputs.

    Attributes:
        part: the part, in words.
        dtype: the type of its values.
        inputs: number of inputs that came out right; 0: none was run.
        what: the kind of inputs, in words; where none was run, the reason.
        complete: whether right results on these inputs prove a kernel that only compares and exchanges; None:
            no inputs prove this kernel.
        wrong: what came out wrong, in words; None: nothing.
    """

    part: str
    dtype: str
    inputs: int
    what: str
    complete: bool | None
    wrong: str | None

    @classmethod
    def of(cls, part: str, dtype: str, emitted: Emitted) -> Check:
        """Return the check that ran a part on 0-1 inputs."""
        wrong = None
        if emitted.failing is not None:
            wrong = f"0-1 input {' '.join(map(str, emitted.failing))} comes out wrong"
        return cls(part, dtype, emitted.inputs, f"0-1 inputs, {emitted.what},", emitted.complete, wrong)

    def sentence(self) -> str:
        """Return the check as a line of a report."""
        where = f"built kernel, {self.dtype}, {self.part}"
        if self.wrong is not None:
            return f"{where}: {self.wrong}"
        if not self.inputs:
            return f"{where}: not run {self.what}"
        rest = ", which do not settle it" if self.complete is False else ""
        return f"{where}: {self.inputs:,} {self.what} come out right{rest}"


# The claim of a package: its network; the property that the network was proved to have; and a function that
# builds and runs the package's kernel, and yields the check of each part.
Claim = tuple[Network, Property, Callable[[Budget], Iterator[Check]]]

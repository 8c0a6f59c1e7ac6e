"""Request: what to compile, checked before any stage runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nsc.arguments import flag, integer, is_name, wholes
from nsc.compiler.describe import Named
from nsc.compiler.package import check_name
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule.cutting import STRAIGHT_LINE
from nsc.compiler.selection import Selection
from nsc.compiler.verify import Property, parse, sort
from nsc.contract.exact import C_TYPES
from nsc.contract.interface import REALS
from nsc.contract.targets import TARGETS
from nsc.errors import LoweringError, NetworkError
from nsc.wording import argument


@dataclass(frozen=True)
class Request:
    """A request to compile a network.

    Args:
        network, n, format, index_base: the network, as `describe` takes it.
        relaxation: how comparators are softened.
        dtypes: arithmetic types to compile for, keys of REALS; for a text in a language types of values, keys
            of C_TYPES.
        targets: what machines to compile for, keys of TARGETS; a text in a language is for all.
        name: the package's name; None: `naming.default_name`.
        unproved: whether a network that no exact method settled is accepted.
        version: the version of nsc, for headers.
        select: what is selected; None: all values, sorted.
        wires: the wires that carry what is selected, as `Selection.property_of` takes them.
        off_by: for a text in a language, how far the ranks of its results may be from those selected.
        remove_redundant: whether comparators that exact results do not need are removed, which changes soft
            values.
        language: what `nsc emit` writes, a key of LANGUAGES; None: a package.
        window: rows and columns of the pixels that an emitted network selects from; None: any values.
        single_file: whether kernels' sources have the kernel library in them, instead of including it.
        straight_line: comparators that get straight-line code in CUDA; fewer build sooner and compute the
            same values.

    Raises:
        NetworkError: n or an index base that is no integer.
        LoweringError: an unknown dtype or target, no dtype, a flag that is no bool, a value that is no
            Selection, wires without a selection, or a name that no package may have.
    """

    network: Named
    n: int | None = None
    relaxation: Relaxation = field(default_factory=Relaxation)
    dtypes: tuple[str, ...] = ("float32",)
    targets: tuple[str, ...] = ("cpu",)
    name: str | None = None
    unproved: bool = False
    version: str = "0"
    format: str | None = None
    index_base: int | None = None
    select: Selection | None = None
    wires: Sequence[int] | None = None
    off_by: int = 0
    remove_redundant: bool = False
    language: str | None = None
    window: tuple[int, int] | None = None
    single_file: bool = False
    straight_line: int = STRAIGHT_LINE

    def __post_init__(self) -> None:
        for name in ("n", "index_base"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, integer(name, value, NetworkError))
        object.__setattr__(self, "off_by", integer("off_by", self.off_by, LoweringError))
        if self.off_by and (self.off_by < 0 or self.language is None or self.select is None):
            raise LoweringError(
                f"{argument('off_by', self.off_by)} is for selections that are written in a language: "
                "leave it out"
            )
        for name in ("unproved", "remove_redundant"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                object.__setattr__(self, name, flag(name, value, LoweringError))
        for name, known in (("dtypes", REALS if self.language is None else C_TYPES), ("targets", TARGETS)):
            object.__setattr__(self, name, _some_of(name, getattr(self, name), known))
        if self.name is not None:
            check_name(self.name)
        if self.select is not None and not isinstance(self.select, Selection):
            raise LoweringError(
                f"{argument('select')} must be nsc.top_k(8), nsc.median(), nsc.ranks(3, 7) or the like, got "
                f"{self.select!r}"
            )
        if self.wires is not None:
            if self.select is None:
                raise LoweringError(
                    f"{argument('wires')} says where selected values are: say what is selected, or leave "
                    "it out"
                )
            numbers = wholes(self.wires)
            if not numbers or min(numbers) < 0:
                raise LoweringError(
                    f"{argument('wires')} must list integers that are 0 or more, got {self.wires!r}"
                )
            object.__setattr__(self, "wires", numbers)

    def property_of(self, n: int) -> Property:
        """Return what the compiled network on n wires must do: each output wire carries one rank.

        Raises:
            PropertyError: ranks or wires that n wires do not have.
        """
        if self.select is None:
            return sort(n)
        exact = self.select.property_of(n, self.wires)
        return parse(exact.name, n, off_by=self.off_by) if self.off_by else exact

    def outputs(self, n: int) -> dict[int, int] | None:
        """Return each output wire with its rank, in the order of the operator's outputs; None: sorted."""
        return None if self.select is None else self.select.outputs(n, self.wires)


def _some_of(name: str, names: tuple[str, ...], known: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names in the order of the known ones, each once."""
    if not names or [word for word in names if not is_name(word, known)]:
        note = " (float32 also serves bfloat16 and float16)" if known is REALS else ""
        raise LoweringError(
            f"{argument(name)} must be some of {', '.join(known)}{note}, got "
            f"{', '.join(map(repr, names)) or 'none'}"
        )
    return tuple([word for word in known if word in names])

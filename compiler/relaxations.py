"""Relaxations: how a comparator is softened, by a sigmoid of the kernel library.

With d = x[hi] - x[lo] and v = steepness·φ(d) the keep weight of a comparator is α = f(v) and its swap
weight is β = f(-v). Every f satisfies f(-v) = 1 - f(v). φ is the activation replacement trick (the paper,
section 3.3) in the form that is finite at ties, φ(d) = d / (|d| + 1e-10)^λ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nsc import library
from nsc.arguments import flag, is_name, real
from nsc.errors import LoweringError
from nsc.wording import argument

# The sigmoids of the kernel library, and where each was proposed for sorting networks.
SIGMOIDS: dict[str, str] = {
    name: source
    for source, name in re.findall(
        r"^// From (.+)\nstruct (\w+) {$", library.text("nsc/relaxed/relaxations.h"), re.MULTILINE
    )
}

# The strengths of the activation replacement trick that are roots: lambda to 1 / lambda.
ROOTS = {0.5: 2, 0.25: 4}


@dataclass(frozen=True)
class Relaxation:
    """How a comparator is softened.

    Args:
        sigmoid: a name in SIGMOIDS.
        art_lambda: strength λ of the activation replacement trick, 0 <= λ < 1; 0 is none.
        error_free: forward exact minima, maxima and a 0/1 P; backward the soft gradients, taken at
            the exact intermediate values (Kim et al., ICLR 2024).

    Raises:
        LoweringError: an unknown sigmoid, λ out of range, or an error_free that is no bool.

    >>> Relaxation("cauchy", art_lambda=0.0).describe()
    'cauchy'
    """

    sigmoid: str = "logistic"
    art_lambda: float = 0.25
    error_free: bool = False

    def __post_init__(self) -> None:
        if not is_name(self.sigmoid, SIGMOIDS):
            raise LoweringError(f"no relaxation is called {self.sigmoid!r}; known: {', '.join(SIGMOIDS)}")
        strength = real(self.art_lambda)
        if strength is None or not 0 <= strength < 1:
            raise LoweringError(f"{argument('art_lambda')} must be in [0, 1), got {self.art_lambda!r}")
        object.__setattr__(self, "art_lambda", strength)
        object.__setattr__(self, "error_free", flag("error_free", self.error_free, LoweringError))

    @property
    def root(self) -> int | None:
        """1/λ where (|d| + ε)^-λ is an inverse square or fourth root, else None."""
        return ROOTS.get(self.art_lambda)

    def describe(self) -> str:
        """Return the relaxation in words, for headers and tables."""
        art = f", ART λ = {self.art_lambda:g}" if self.art_lambda else ""
        return f"{self.sigmoid}{art}{', error-free' if self.error_free else ''}"


def relaxation_of(
    relaxation: str | Relaxation, art_lambda: float | None = None, error_free: bool | None = None
) -> Relaxation:
    """Return the relaxation that is named by its sigmoid and two options, or is one already.

    Args:
        relaxation: a name in SIGMOIDS, or a Relaxation.
        art_lambda, error_free: as in Relaxation; None: its defaults. A Relaxation has its own.

    Raises:
        LoweringError: an unknown sigmoid, λ out of range, or an option beside a Relaxation.

    >>> relaxation_of("cauchy", art_lambda=0.5) == relaxation_of(Relaxation("cauchy", 0.5))
    True
    """
    if isinstance(relaxation, Relaxation):
        options = {"art_lambda": art_lambda, "error_free": error_free}
        named = [name for name, value in options.items() if value is not None]
        if named:
            raise LoweringError(
                f"{argument('relaxation')} is a Relaxation, which has {' and '.join(named)} itself: leave "
                f"{argument(named[0])} out, or name the sigmoid alone, as {relaxation.sigmoid!r}"
            )
        return relaxation
    return Relaxation(
        relaxation,
        Relaxation.art_lambda if art_lambda is None else art_lambda,
        Relaxation.error_free if error_free is None else error_free,
    )

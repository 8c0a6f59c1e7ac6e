"""Relaxations: the sigmoid families that soften a comparator, in one table.

With d = x[hi] - x[lo] and v = steepness·φ(d) the keep weight of a comparator is α = f(v). Every f
satisfies f(-v) = 1 - f(v). φ is the activation replacement trick (the paper, section 3.3) in the
form that is finite at ties, φ(d) = d / (|d| + 1e-10)^λ.
"""

from __future__ import annotations

from dataclasses import dataclass

from nsc.errors import LoweringError


@dataclass(frozen=True)
class Sigmoid:
    """A sigmoid family as C++ expressions.

    Attributes:
        value: f(v) as an expression of `v`, of type `real`.
        slope: f'(v) as an expression of `v` and `alpha`, which is f(v).
        monotone: whether the relaxed minimum is non-decreasing in both arguments.
        source: where the family was proposed for sorting networks.
    """

    value: str
    slope: str
    monotone: bool
    source: str


# Constants have the 17 digits that round-trip in float64.
SIGMOIDS: dict[str, Sigmoid] = {
    "logistic": Sigmoid(
        value="1 / (1 + exp(-v))",
        slope="alpha * (1 - alpha)",
        monotone=False,
        source="Petersen et al., ICML 2021",
    ),
    "gaussian": Sigmoid(
        value="real(0.5) * erfc(-v * real(0.70710678118654752))",
        slope="exp(real(-0.5) * v * v) * real(0.39894228040143268)",
        monotone=False,
        source="Petersen et al., ICLR 2022",
    ),
    "reciprocal": Sigmoid(
        value="v < 0 ? 1 / (2 - v) : 1 - 1 / (2 + v)",
        slope="1 / ((2 + fabs(v)) * (2 + fabs(v)))",
        monotone=True,
        source="Petersen et al., ICLR 2022",
    ),
    "cauchy": Sigmoid(
        value="atan(v) * real(0.31830988618379067) + real(0.5)",
        slope="real(0.31830988618379067) / (1 + v * v)",
        monotone=True,
        source="Petersen et al., ICLR 2022",
    ),
    "optimal": Sigmoid(
        value="v > real(0.25) ? 1 - 1 / (16 * v) : v < real(-0.25) ? -1 / (16 * v) : v + real(0.5)",
        slope="fabs(v) > real(0.25) ? 1 / (16 * v * v) : real(1)",
        monotone=True,
        source="Petersen et al., ICLR 2022",
    ),
    "hard": Sigmoid(
        value="v < 0 ? real(0) : v >= 0 ? real(1) : v",
        slope="real(0)",
        monotone=True,
        source="the exact comparator",
    ),
}


@dataclass(frozen=True)
class Relaxation:
    """How a comparator is softened.

    Args:
        sigmoid: a name in SIGMOIDS.
        art_lambda: strength λ of the activation replacement trick, 0 <= λ < 1; 0 is none.
        error_free: forward exact minima, maxima and a 0/1 P; backward the soft gradients, taken at
            the exact intermediate values (Kim et al., ICLR 2024).

    Raises:
        LoweringError: an unknown sigmoid, or λ out of range.
    """

    sigmoid: str = "logistic"
    art_lambda: float = 0.25
    error_free: bool = False

    def __post_init__(self) -> None:
        if self.sigmoid not in SIGMOIDS:
            raise LoweringError(f"no relaxation is called {self.sigmoid!r}; known: {', '.join(SIGMOIDS)}")
        if not (isinstance(self.art_lambda, int | float) and 0 <= self.art_lambda < 1):
            raise LoweringError(f"art_lambda must be in [0, 1), got {self.art_lambda!r}")
        object.__setattr__(self, "art_lambda", float(self.art_lambda))

    @property
    def power(self) -> str:
        """(|d| + ε)^λ as a C++ expression of `size` = |d| + ε; roots where λ allows, for speed."""
        roots = {0.5: "sqrt(size)", 0.25: "sqrt(sqrt(size))"}
        literal = f"real({self.art_lambda.hex()})"
        return roots.get(self.art_lambda, f"pow(size, {literal})")

    @property
    def lambda_literal(self) -> str:
        """λ as a C++ literal that round-trips."""
        return f"real({self.art_lambda.hex()})"

    def describe(self) -> str:
        """Return the relaxation in words, for headers and tables."""
        art = f", ART λ = {self.art_lambda:g}" if self.art_lambda else ""
        return f"{self.sigmoid}{art}{', error-free' if self.error_free else ''}"

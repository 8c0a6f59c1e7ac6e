"""Approximations: the polynomials behind the vectorised sigmoids, one table per arithmetic type.

Each interpolates its function at the Chebyshev nodes of its interval and was worked out in 60 digits; `root`
is fitted for the least relative error of the power. With the range reductions of
`templates/shared/functions.j2` every sigmoid is within 4 units in the last place, tails included; the tests
hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Approximations:
    """Coefficients for one arithmetic type as C++ literals, lowest degree first.

    Attributes:
        exp: (exp(r) - 1 - r) / r² for |r| <= ln(2) / 2.
        log: (2 atanh(s) / s - 2) / s² in s², for |s| <= tan(π/8)², which is log(m) of 1/√2 <= m <= √2.
        atan: (atan(z) / z - 1) / z² in z², for 0 <= z <= 1.
        tail: (t + 4) exp(t²/2) Φ(-t) in t / (t + 4) - 5/8, Φ the normal distribution, for t from 0 to where
            Φ(-t) leaves the normal numbers. The form is that of Shepherd & Laframboise 1981; around 5/8 its
            rounding errors are smallest.
        root_guess: the bits of a number, shifted right by 1 or 2 and taken from this, are those of a guess y
            at its inverse square or fourth root. Searched for the least |d|, d = 1 - x y² or 1 - x y⁴.
        root: ((1 - d)^(-1/2) - 1) / d or ((1 - d)^(-1/4) - 1) / d for |d| <= 0.0682 or 0.1236: what the
            guess lacks, in float32 to 9e-10 or 1e-8, in float64 to 3e-11 or 5e-10.
        newton_steps: Newton steps from there to full precision.
        mantissa_bits, exponent_bias: the layout of the type.
        rounding: a number that, added to another, leaves no places behind the point; its last bits are those
            of exponent_bias.
        log2_high, log2_low: log(2) in two parts; products of the first with exponents are exact.
        half_root: the bits of 1/√2.
    """

    exp: tuple[str, ...]
    log: tuple[str, ...]
    atan: tuple[str, ...]
    tail: tuple[str, ...]
    root_guess: Mapping[int, str]
    root: Mapping[int, tuple[str, ...]]
    newton_steps: int
    mantissa_bits: int
    exponent_bias: int
    rounding: str
    log2_high: str
    log2_low: str
    half_root: str


APPROXIMATIONS: dict[str, Approximations] = {
    "float32": Approximations(
        exp=("0.5", "0.166665769", "0.0416665545", "0.00836319488", "0.00139262034"),
        log=("0.66666685", "0.399887806", "0.295799494"),
        atan=(
            "-0.333333317",
            "0.199997393",
            "-0.142785687",
            "0.110337641",
            "-0.0865688043",
            "0.0625016944",
            "-0.035871539",
            "0.0135077714",
            "-0.00238699732",
        ),
        tail=(
            "0.624820466",
            "-0.891381673",
            "1.0741856",
            "-1.0536018",
            "0.777799838",
            "-0.33914826",
            "-0.0435166202",
            "0.169012995",
            "-0.139204871",
            "-0.196684517",
            "-0.0574274183",
        ),
        root_guess={2: "0x5f374840", 4: "0x4f581840"},
        root={
            2: ("0.5000000014", "0.3749978849", "0.3124966822", "0.2749050324", "0.2476998511"),
            4: ("0.2500000239", "0.1562427445", "0.117174033", "0.09674244691", "0.08267930173"),
        },
        newton_steps=0,
        mantissa_bits=23,
        exponent_bias=127,
        rounding="12583039",
        log2_high="0.693145751953125",
        log2_low="1.42860677e-6",
        half_root="0x3f3504f3",
    ),
    "float64": Approximations(
        exp=(
            "0.5",
            "0.16666666666666667",
            "0.041666666666624038",
            "0.0083333333333300549",
            "0.0013888888917258758",
            "1.9841269863088254e-4",
            "2.4801521225986432e-5",
            "2.7557268406190795e-6",
            "2.7620121717381935e-7",
            "2.5100411082014901e-8",
        ),
        log=(
            "0.66666666666666666",
            "0.40000000000000877",
            "0.28571428570803612",
            "0.22222222391713917",
            "0.18181795640132906",
            "0.15386239702814658",
            "0.13268773138656885",
            "0.13086626147840102",
        ),
        atan=(
            "-0.3333333333333333",
            "0.19999999999997532",
            "-0.14285714285384132",
            "0.11111111093490828",
            "-0.090909085908919342",
            "0.076922989710332169",
            "-0.066665646992891042",
            "0.058815068777936561",
            "-0.052579733342841108",
            "0.04737749579527779",
            "-0.042603566326016521",
            "0.037494868125352471",
            "-0.031277189066996385",
            "0.023696731580048622",
            "-0.015535152475414176",
            "0.0083689311784501621",
            "-0.0034958859739163095",
            "0.0010496035084968515",
            "-1.9996189377901382e-4",
            "1.8061954618612152e-5",
        ),
        tail=(
            "0.62482046525604509",
            "-0.89138168293149617",
            "1.0741861375123792",
            "-1.0535977207390769",
            "0.77775369300482827",
            "-0.33961385212535415",
            "-0.043641273702339333",
            "0.18141696789183204",
            "-0.078709357922949019",
            "-0.066043619801711438",
            "0.073802098177121056",
            "0.022226332719490928",
            "-0.057979316367302279",
            "-0.0083228567349540734",
            "0.047649215465235191",
            "0.0063819494210518026",
            "-0.042634298185917101",
            "-0.011377540258399676",
            "0.040565961916937004",
            "0.02716739878727418",
            "-0.027437153895121176",
            "-0.049386638620891862",
            "-0.029324412412092989",
            "-0.0071597319112107679",
            "-0.0003181317716908327",
        ),
        root_guess={2: "0x5fe6e90800000000", 4: "0x4feb030800000000"},
        root={
            2: ("0.5000000023", "0.3750000041", "0.3124960257", "0.273432485", "0.247804961", "0.2273851983"),
            4: (
                "0.2500000245",
                "0.1562500536",
                "0.1171744664",
                "0.09519660163",
                "0.08264345295",
                "0.07266320849",
            ),
        },
        newton_steps=1,
        mantissa_bits=52,
        exponent_bias=1023,
        rounding="6755399441056767",
        log2_high="0.69314718036912382",
        log2_low="1.9082149292705877e-10",
        half_root="0x3fe6a09e667f3bcd",
    ),
}

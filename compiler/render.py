"""Render: a schedule and a relaxation to C++ text, a network's name to a Python module."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import jinja2
import jinja2.meta

from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.schedule import Schedule
from nsc.errors import LoweringError

# The version of the C interface between a kernel and the runtime.
KERNEL_ABI = 1

# Columns of a payload that are routed together: one AVX-512 register of float32, two of AVX2.
LANES = 16
# Pieces that a sample's columns are cut into for threads. A constant, so that sums are the same for
# every number of threads; each piece has its own sums of weight gradients.
MOST_CHUNKS = 16
# Aim for the memory of weights and their gradients that are held at a time.
SCRATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class Real:
    """An arithmetic type that a kernel is compiled for.

    Attributes:
        name: as torch and numpy call it.
        type: as C++ calls it.
        suffix: how the C functions for it end.
        serves: dtypes of tensors that are computed in it.
    """

    name: str
    type: str
    suffix: str
    serves: tuple[str, ...]


REALS: dict[str, Real] = {
    "float32": Real("float32", "float", "f32", ("float32", "bfloat16", "float16")),
    "float64": Real("float64", "double", "f64", ("float64",)),
}


@dataclass(frozen=True)
class Header:
    """What the head of a generated file says of its origin."""

    name: str
    command: str
    version: str
    proof: str


def render_cpp(header: Header, schedule: Schedule, relaxation: Relaxation, reals: tuple[str, ...]) -> str:
    """Return the C++ source of a kernel; the same arguments, the same text."""
    network = schedule.network
    sigmoid = SIGMOIDS[relaxation.sigmoid]
    return render(
        "kernel.cpp.j2",
        {
            "kernel": {
                **header.__dict__,
                "n": network.n,
                "size": network.size,
                "depth": network.depth,
                "digest": network.digest,
                "relaxation": relaxation.describe(),
                "abi": KERNEL_ABI,
            },
            "schedule": {
                "run_lines": list(_run_lines(schedule)),
                "layer_lines": _number_lines(_offsets(len(runs) for runs in schedule.layers)),
                "segment_lines": _number_lines(schedule.segments),
                "segment_count": len(schedule.segments) - 1,
                "widest_segment": schedule.widest_segment,
                "lanes": LANES,
                "most_chunks": MOST_CHUNKS,
                "scratch_bytes": SCRATCH_BYTES,
            },
            "relaxation": {
                "value": sigmoid.value,
                "slope": sigmoid.slope,
                "source": f"{relaxation.sigmoid}, {sigmoid.source}",
                "has_art": relaxation.art_lambda > 0,
                "art_lambda": repr(relaxation.art_lambda),
                "lambda_literal": relaxation.lambda_literal,
                "power": relaxation.power,
                "exact_forward": relaxation.error_free,
                "error_free": relaxation.error_free,
                "arrays": 3 if relaxation.error_free else 2,
            },
            "functions_of": [("f", "float"), ("", "double")],
            "reals": [REALS[real].__dict__ for real in reals],
        },
    )


def _run_lines(schedule: Schedule) -> Iterator[str]:
    """Yield a line of run initialisers per layer and a closing entry, which no layer uses."""
    weight = 0
    for runs in schedule.layers:
        items = []
        for lo, hi, step, count in runs.tolist():
            items.append(f"{{{lo}, {hi}, {step}, {count}, {weight}}},")
            weight += count
        yield " ".join(items)
    yield f"{{0, 0, 0, 0, {weight}}},"


def _offsets(counts: Iterator[int]) -> Iterator[int]:
    total = 0
    yield total
    for count in counts:
        total += count
        yield total


def _number_lines(numbers: Iterator[int] | tuple[int, ...]) -> list[str]:
    return textwrap.wrap(", ".join(map(str, numbers)), width=96)


def render(template: str, values: Mapping[str, object]) -> str:
    """Fill a template. The names it uses must equal the names given, or LoweringError is raised."""
    used = _names_used(template)
    if used != set(values):
        raise LoweringError(
            f"template {template} uses {sorted(used)}, was given {sorted(values)}: mend one of them"
        )
    return _environment().get_template(template).render(values)


def _names_used(template: str) -> set[str]:
    """Return the names that a template and those it includes take from outside."""
    environment = _environment()
    tree = environment.parse(_without_comments(_template_text(template)))
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
        loader=jinja2.FunctionLoader(lambda name: _without_comments(_template_text(name))),
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        line_statement_prefix="//%",
        keep_trailing_newline=True,
        autoescape=False,
    )


def _template_text(name: str) -> str:
    return resources.files("nsc.templates").joinpath(name).read_text(encoding="utf-8")


def _without_comments(text: str) -> str:
    """Drop the template's own remarks with their lines; jinja would leave these empty."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//#"))

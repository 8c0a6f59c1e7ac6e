"""Languages: the one table of what a network is written in, and writing by it.

A language is a row of the table, and a template of its own syntax. Its test runs the row's command.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nsc.arguments import is_name
from nsc.compiler.driver import scheduled_network
from nsc.compiler.emit import c, cuda, hardware, rust
from nsc.compiler.emit.plan import Plan
from nsc.compiler.naming import head_of
from nsc.compiler.network import Network
from nsc.compiler.request import Request
from nsc.compiler.schedule import Schedule
from nsc.compiler.verify import Budget, Proof
from nsc.contract.windows import Window
from nsc.errors import LoweringError
from nsc.templates import fill
from nsc.wording import argument


@dataclass(frozen=True)
class Language:
    """A language that networks are written in.

    Attributes:
        words: its name in messages.
        suffix: of its files.
        template: of its texts, in templates/emit/. It is given `plan`, and `facts` of it.
        use: a program's line that uses a text, in which {file}, {name}, {dtype} and {verb}, sort or
            select, are filled in.
        check: the command that compiles, or checks, a text without a warning; {file} is filled in.
        facts: what the template needs besides the plan.
        names: a regular expression of the names that a text may have.
        has_types: whether the text has functions for each of `Request.dtypes`; else it is for all types.
        has_windows: whether it has functions for images.
    """

    words: str
    suffix: str
    template: str
    use: str
    check: str
    facts: Callable[[Plan], dict[str, Any]] = lambda plan: {}
    names: str = r"\w+"
    has_types: bool = False
    has_windows: bool = False


LANGUAGES: dict[str, Language] = {
    "c": Language(
        words="C",
        suffix=".h",
        template="c.h.j2",
        use='#include "{file}" and {name}_{dtype}(x, values)',
        check="gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only -x c {file}",
        facts=c.facts,
        has_types=True,
        has_windows=True,
    ),
    "cuda": Language(
        words="CUDA",
        suffix=".cuh",
        template="cuda.cuh.j2",
        use='#include "{file}" and {name}_{verb}(x), in a kernel',
        check="g++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -x c++ {file}",
        facts=cuda.facts,
    ),
    "rust": Language(
        words="Rust",
        suffix=".rs",
        template="rust.rs.j2",
        use="mod {name}; and {name}::{verb}(values)",
        check="rustc --edition 2021 --crate-type lib --emit metadata -D warnings {file}",
        facts=rust.facts,
    ),
    "verilog": Language(
        words="Verilog",
        suffix=".v",
        template="verilog.v.j2",
        use="{name} #(.KEY_WIDTH(8)) {verb} (clk, reset, enable, in_valid, in_items, out_valid, out_items);",
        check="verilator --lint-only -Wall --default-language 1364-2005 {file}",
        facts=partial(hardware.facts, mark="//", gets=" = ", then=", "),
    ),
    "vhdl": Language(
        words="VHDL",
        suffix=".vhd",
        template="vhdl.vhd.j2",
        use="{verb} : entity work.{name} generic map (KEY_WIDTH => 8)"
        " port map (clk, reset, enable, in_valid, in_items, out_valid, out_items);",
        check="ghdl -a --std=08 -Whide -Wbody -Wothers --warn-error {file}",
        facts=partial(hardware.facts, mark="--", gets=" <= ", then="; "),
        names="[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*",
    ),
}


@dataclass(frozen=True)
class Emitted:
    """The results of the stages for a request of a text in a language.

    Attributes:
        network, proof: as in `Compiled`.
        name: begins the names of its functions, or is the name of its circuit.
        file: the name of its file, if the user names none.
        text: the file's text.
    """

    network: Network
    proof: Proof
    name: str
    file: str
    text: str


def compile_emitted(request: Request, budget: Budget | None = None) -> Emitted:
    """Describe, transform, prove and schedule as `compile_network`, and render a text in a language.

    Args:
        request: what to compile, with its language. In the place of a network it may name a window of pixels,
            such as 3x3: the text then filters images.
        budget: as in `compile_network`.

    Raises:
        All errors of `compile_network`.
        LoweringError: an unknown language, or an option or a name that it does not take.
        WindowError: a window of too many values.
    """
    language = _known(request)
    request = _with_window(request)
    if request.dtypes != ("float32",) and not language.has_types:
        raise LoweringError(
            f"a text in {language.words} is for all types: leave out {argument('dtypes', request.dtypes)}"
        )
    if request.window and not language.has_windows:
        raise LoweringError(
            f"filters of images are written in C alone: for the network of a window in {language.words} name "
            f"best and its {request.n} values"
        )
    budget = Budget() if budget is None else budget
    scheduled, proof = scheduled_network(request, budget)
    budget.progress.phase("render")
    return emitted(request, scheduled, proof)


def emitted(request: Request, schedule: Schedule, proof: Proof) -> Emitted:
    """Return the text of a schedule; the same arguments, the same text.

    Args:
        request: what was compiled, with its language.
        schedule: the network as the text's functions run it.
        proof: that it does what it was compiled for.
    """
    language, head = _known(request), head_of(request, schedule.network, proof)
    if not re.fullmatch(language.names, head.name):
        raise LoweringError(
            f"{language.words} takes no name such as {head.name}: choose another {argument('name')}"
        )
    plan = Plan(request, head, schedule)
    text = fill(f"emit/{language.template}", plan=plan, **language.facts(plan))
    return Emitted(plan.network, proof, head.name, f"{head.name}{language.suffix}", text)


def _known(request: Request) -> Language:
    if not is_name(request.language, LANGUAGES):
        raise LoweringError(f"no language {str(request.language)[:40]!r}; known: {', '.join(LANGUAGES)}")
    return LANGUAGES[request.language]


def _with_window(request: Request) -> Request:
    """Return the request for the smallest network of a window, if that is what its network names."""
    size = re.fullmatch(r"(\d{1,9})x(\d{1,9})", request.network) if isinstance(request.network, str) else None
    if size is None:
        return request
    rows, columns = int(size[1]), int(size[2])
    values = Window(1, rows, columns, (0,)).values
    outputs = None if request.select is None else request.outputs(values)
    if outputs is None or len(outputs) != 1:
        raise LoweringError(
            f"say which value of {request.network} pixels is selected: {argument('median', True)} of an odd "
            f"number, or {argument('ranks', values // 2)}"
        )
    return replace(request, network="best", n=values, window=(rows, columns))

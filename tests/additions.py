"""Toy additions to the project, one of each kind that CONTRIBUTING.md describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# What the toys are called, where CONTRIBUTING.md says NAME.
NAME = "toy"

Change = Callable[[str], str]


@dataclass(frozen=True)
class Addition:
    """An addition and its use.

    Attributes:
        heading: its section of CONTRIBUTING.md.
        changes: file to what makes its new text of its old one; "" is the text of a new file.
        program: Python that fails unless the addition works.
    """

    heading: str
    changes: dict[str, Change]
    program: str


def new_file(text: str) -> Change:
    def change(old: str) -> str:
        assert not old, "the file is there already"
        return text

    return change


def before(mark: str, text: str) -> Change:
    """Put a text before the only place of a mark."""

    def change(old: str) -> str:
        assert old.count(mark) == 1, f"{mark!r} stands {old.count(mark)} times"
        return old.replace(mark, text + mark)

    return change


def after(mark: str, text: str) -> Change:
    """Put a text behind the only place of a mark."""

    def change(old: str) -> str:
        assert old.count(mark) == 1, f"{mark!r} stands {old.count(mark)} times"
        return old.replace(mark, mark + text)

    return change


def both(*changes: Change) -> Change:
    def change(old: str) -> str:
        for one in changes:
            old = one(old)
        return old

    return change


RELAXATION = Addition(
    "A relaxation",
    {
        "compiler/relaxations.py": after(
            "SIGMOIDS: dict[str, Sigmoid] = {\n",
            """    "toy": Sigmoid(
        tail="1 / (2 + t + t * t)",
        slope="(1 + 2 * t) / ((2 + t + t * t) * (2 + t + t * t))",
        needs=frozenset(),
        monotone=False,
        source="a test",
    ),
""",
        ),
        "runtime/reference.py": after(
            "TAILS: dict[str, Callable[[Tensor], Tensor]] = {\n",
            '    "toy": lambda t: 1 / (2 + t + t * t),\n',
        ),
    },
    """
import nsc, torch
from nsc.runtime import reference
op = nsc.compile("bitonic", 4, relaxation="toy", dtypes="float64")
x = torch.tensor([[0.3, -1.0, 2.0, 0.1]], dtype=torch.float64, requires_grad=True)
values = op.sort(x, 1.5)
plain = reference.relax(op.kernel, x, torch.full((1,), 1.5, dtype=torch.float64), None, "none")[0]
assert torch.allclose(values, plain, rtol=1e-12), (values, plain)
assert torch.autograd.gradcheck(lambda x: op.sort(x, 1.5), x)
""",
)

FORMAT = Addition(
    "A format",
    {
        "compiler/formats/toy.py": new_file('''"""A toy format: ``toy 0>1 2>3``."""

from __future__ import annotations

from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import WIRE, pairs_of
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress


def _recognises(text: str) -> bool:
    return text.startswith("toy ")


def _parse(text: str, progress: Progress) -> Listing:
    return Listing(pairs_of(text.removeprefix("toy "), rf"{WIRE}>{WIRE}(?: |$)", "0>1", progress))


def _write(network: Network) -> str:
    return "toy " + " ".join(f"{lo}>{hi}" for lo, hi in network.comparators.tolist()) + "\\n"


FORMAT = Format(example="toy 0>1", suffixes=(".toy",), recognises=_recognises, parse=_parse, write=_write)
'''),
        "compiler/formats/table.py": both(
            before("    sorterhunter_log,\n)", "    toy,\n"),
            after("FORMATS: dict[str, Format] = {\n", '    "toy": toy.FORMAT,\n'),
        ),
    },
    """
from click.testing import CliRunner
from nsc.cli import main
def nsc(*words):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.output
open("net.json", "w").write("[[0,2],[1,3],[0,1],[2,3],[1,2]]")
nsc("convert", "net.json", "net.toy")
assert open("net.toy").read().split() == ["toy", "0>2", "1>3", "0>1", "2>3", "1>2"]
assert nsc("verify", "--net", "net.toy").startswith("sorts")
""",
)

TARGET = Addition(
    "A target",
    {
        "nsc/contract/targets.py": after(
            '        Target("cuda", ".cu", ("cuda",)),\n', '        Target("toy", ".toy", ()),\n'
        ),
        "compiler/targets/toy.py": new_file('''"""A toy target: the shapes and wires of codelets as text."""

from __future__ import annotations

import json
from dataclasses import dataclass

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import Schedule
from nsc.compiler.targets.records import Header
from nsc.templates import fill


@dataclass(frozen=True)
class ToyKernel:
    name: str
    facts: str
    counts: tuple[int, ...]


def lower(schedule: Schedule, relaxation: Relaxation) -> Schedule:
    return schedule


def launch(schedule: Schedule) -> None:
    return None


def render(
    header: Header, facts: str, schedule: Schedule, relaxation: Relaxation, reals: tuple[str, ...]
) -> str:
    counts = tuple(len(codelet.shape) for codelet in schedule.codelets)
    return fill("toy/kernel.toy.j2", ToyKernel(header.name, json.dumps(facts), counts))
'''),
        "compiler/targets/backends.py": both(
            after("from nsc.compiler.targets import cpp, cuda", ", toy"),
            after(
                "BACKENDS: dict[str, Backend] = {\n",
                '    "toy": Backend(TARGETS["toy"], toy.lower, toy.launch, toy.render),\n',
            ),
        ),
        "templates/toy/kernel.toy.j2": new_file(
            "toy {{ name }} {{ facts }}\n//% for count in counts\ncodelet of {{ count }}\n//% endfor\n"
        ),
    },
    """
from pathlib import Path
from click.testing import CliRunner
from nsc.cli import main
done = CliRunner().invoke(main, ["compile", "--net", "bitonic", "--n", "4", "--target", "cpu,toy"])
assert done.exit_code == 0, done.output
folder = Path("generated/bitonic_4")
lines = (folder / "bitonic_4.toy").read_text().splitlines()
assert lines[0].startswith('toy bitonic_4 "{') and lines[1:] == ["codelet of 6"], lines
assert (folder / "bitonic_4.cpp").exists()
""",
)

PASS = Addition(
    "A pass",
    {
        "compiler/passes/toy.py": new_file('''"""A toy pass: layers that repeat the layer before go."""

from __future__ import annotations

from nsc.compiler.network import Network


def toy(network: Network) -> Network:
    """Return the network without layers that repeat the layer before."""
    layers: list[list[list[int]]] = []
    for layer in network.layers():
        if not layers or layer.tolist() != layers[-1]:
            layers.append(layer.tolist())
    return Network.from_layers(network.n, layers)
'''),
        "compiler/optimize/pipeline.py": both(
            before("from nsc.compiler.passes.untangle import", "from nsc.compiler.passes.toy import toy\n"),
            after("    before = counts(network, property_)\n", "    network = toy(network)\n"),
        ),
    },
    """
import nsc
from nsc.compiler.optimize.pipeline import optimize
from nsc.compiler.verify import Budget, sort
twice = nsc.Network.from_layers(2, [[(0, 1)], [(0, 1)]])
assert optimize(twice, sort(2), Budget()).network.size == 1
""",
)

METHOD = Addition(
    "A method of proof",
    {
        "compiler/verify/toy.py": new_file('''"""A toy method: two wires are sorted by one comparator."""

from __future__ import annotations

from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import Question


def toy(question: Question) -> Answer | None:
    """Prove that one comparator sorts two wires."""
    if question.network.n != 2 or not question.is_sort or not question.network.size:
        return None
    return Answer(proved="one comparator sorts two wires")
'''),
        "compiler/verify/ladder.py": both(
            before("from nsc.errors import PropertyError", "from nsc.compiler.verify.toy import toy\n"),
            after("METHODS: dict[str, Method] = {\n", '    "toy": toy,\n'),
        ),
    },
    """
import nsc
proof = nsc.verify("odd_even", 2)
assert (proof.verdict.value, proof.method) == ("proved", "toy"), proof
""",
)

ADDITIONS = (RELAXATION, FORMAT, TARGET, PASS, METHOD)

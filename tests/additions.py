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
        tests: of the project, which must pass with the addition too: those with a list of such things.
    """

    heading: str
    changes: dict[str, Change]
    program: str
    tests: tuple[str, ...]


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
        "library/nsc/relaxed/relaxations.h": before(
            "// From the exact comparator\n",
            """// From a test
struct toy {
    template <class real>
    static NSC_FUNCTION Vec<real> tail(Vec<real> t) {
        return 1 / (2 + t + t * t);
    }
    template <class real>
    static NSC_FUNCTION Vec<real> slope(Vec<real> t, Vec<real>, Vec<real>) {
        return (1 + 2 * t) / ((2 + t + t * t) * (2 + t + t * t));
    }
};

""",
        ),
        "runtime/relaxed/reference.py": after(
            "TAILS: dict[str, Callable[[Tensor], Tensor]] = {\n",
            '    "toy": lambda t: 1 / (2 + t + t * t),\n',
        ),
        "study/explorer/web/soft.mjs": after(
            "export const SIGMOIDS = Object.freeze({\n",
            "  toy: {\n"
            "    tail: (t) => 1 / (2 + t + t * t),\n"
            "    slope: (t) => (1 + 2 * t) / (2 + t + t * t) ** 2,\n"
            "  },\n",
        ),
    },
    """
import nsc, torch
from click.testing import CliRunner
from nsc.cli.main import main
from nsc.runtime.relaxed import reference
words = [["compile", "bitonic", "--n", "3", "--relaxation", "toy"], ["verify", "generated/bitonic_3_toy"]]
for each in words:
    done = CliRunner().invoke(main, each)
    assert done.exit_code == 0, done.output
op = nsc.compile("bitonic", 4, relaxation="toy", dtypes="float64")
x = torch.tensor([[0.3, -1.0, 2.0, 0.1]], dtype=torch.float64, requires_grad=True)
values = op.sort(x, 1.5)
plain = reference.relax(op.kernel, x, torch.full((1,), 1.5, dtype=torch.float64), None, "none")[0]
assert torch.allclose(values, plain, rtol=1e-12), (values, plain)
assert torch.autograd.gradcheck(lambda x: op.sort(x, 1.5), x)
assert "toy: {" in nsc.draw("bitonic", 4, relaxation="toy").html
""",
    (
        "tests/contract",
        "tests/library/test_library.py",
    ),
)

FAMILY = Addition(
    "A family",
    {
        "compiler/families/classic.py": before(
            "def odd_even_merge(",
            '''def toy(n: int) -> Network:
    """Return the odd-even transposition network that begins with wires 1 and 2.

    Source: a test.
    """
    n = _check_quadratic("toy", n)
    wires = np.arange(n - 1)
    return Network.from_layers(n, (_pair(wires[(layer + 1) % 2 :: 2], 1) for layer in range(n)))


''',
        ),
        "compiler/families/table.py": both(
            before("    pairwise,\n)\nfrom", "    toy,\n"),
            after("    for family in (\n", "        toy,\n"),
            after("frozenset({", '"toy", '),
        ),
    },
    """
from click.testing import CliRunner
from nsc.cli.main import main
done = CliRunner().invoke(main, ["verify", "toy", "--n", "9"])
assert done.output.startswith("sorts: 9 wires, 36 comparators"), done.output
assert "toy" in CliRunner().invoke(main, ["list", "--n", "9"]).output
""",
    (
        "tests/compiler/test_families.py",
        "tests/cli/test_showing.py",
    ),
)

FORMAT = Addition(
    "A format",
    {
        "compiler/formats/toy.py": new_file('''"""A toy format: ``toy 0>1 2>3``."""

from __future__ import annotations

import re

import numpy as np

from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.network import Network


def _recognises(text: str) -> bool:
    return text.startswith("toy")


def _parse(text: str) -> Listing:
    return Listing(np.array(re.findall(r" ([0-9]+)>([0-9]+)", text), np.int64).reshape(-1, 2))


def _write(network: Network) -> str:
    return "toy" + "".join(f" {lo}>{hi}" for lo, hi in network.comparators.tolist()) + "\\n"


FORMAT = Format(
    suffixes=(".toy",),
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
'''),
        "compiler/formats/files.py": both(
            after("json_lists, lists, table", ", toy"),
            after("FORMATS: dict[str, Format] = {\n", '    "toy": toy.FORMAT,\n'),
        ),
    },
    """
from click.testing import CliRunner
from nsc.cli.main import main
def nsc(*words):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.output
open("net.json", "w").write("[[0,2],[1,3],[0,1],[2,3],[1,2]]")
nsc("convert", "net.json", "net.toy")
assert open("net.toy").read().split() == ["toy", "0>2", "1>3", "0>1", "2>3", "1>2"]
assert nsc("verify", "net.toy").startswith("sorts")
""",
    (
        "tests/compiler/test_formats.py",
        "tests/compiler/test_format_choices.py",
    ),
)


LANGUAGE = Addition(
    "A language",
    {
        "compiler/emit/languages.py": after(
            "LANGUAGES: dict[str, Language] = {\n",
            """    "toy": Language(
        words="Toy",
        suffix=".toy",
        template="toy.toy.j2",
        use="{name} in {file}, which can {verb}",
        check="test -s {file}",
    ),
""",
        ),
        "templates/emit/toy.toy.j2": new_file("""/* {{ plan.head.name }}.toy: {{ plan.title }}
 *
//% for line in plan.origin
 * {{ line }}
//% endfor
 */
//% for operation in plan.operations
{{ operation.lo }} {{ operation.hi }}
//% endfor
"""),
    },
    """
import nsc
assert nsc.emit("toy", "best", 3).endswith("*/\\n0 2\\n0 1\\n1 2\\n")
""",
    ("tests/emit/test_languages.py", "-k", "origin or writes_it_again"),
)

LOSS = Addition(
    "A loss",
    {
        "nsc/contract/routings.py": after(
            "LOSSES: dict[str, Loss] = {\n    loss.name: loss\n    for loss in (\n",
            '        Loss("toy", "the mean of the squared differences of P and the truth", True),\n',
        ),
        "runtime/relaxed/reference.py": both(
            before(
                "# The losses of `contract.routings.LOSSES`",
                """def _toy(p: Tensor, rest: Tensor, truths: Truths, log: _Logs) -> Tensor:
    differences = truths.shares * (p - 1).square() + (1 - truths.shares) * p.square()
    return (truths.weights.unsqueeze(-2) * differences).flatten(1).sum(-1) / p.shape[-1]


""",
            ),
            after(
                "LOSSES: dict[str, Callable[[Tensor, Tensor, Truths, _Logs], Tensor]] = {\n",
                '    "toy": _toy,\n',
            ),
        ),
        "library/nsc/relaxed/losses.h": both(
            before("each(cross_entropy)", "each(toy) "),
            before(
                "// The mean of what is found of entries that are true by a share",
                """// The mean of the squared differences of P and the truth.
struct toy {
    static constexpr bool of_truth = false;
    template <class real>
    static NSC_FUNCTION Vec<real> of(Probability<real> p, bool is_true) {
        const Vec<real> difference = p.p / unit<real> - real(is_true);
        return difference * difference;
    }
    template <class Relaxation, class real>
    static NSC_FUNCTION Vec<real> slope(Probability<real> p, bool is_true) {
        return 2 * (p.p / unit<real> - real(is_true)) / unit<real>;
    }
};

""",
            ),
        ),
    },
    """
import nsc, torch
from click.testing import CliRunner
from nsc.cli.main import main
words = ["compile", "odd_even", "--n", "3", "--dtype", "float64", "--target", "cpu,cuda"]
done = CliRunner().invoke(main, [*words, "--arch", "sm_90"])
assert done.exit_code == 0, done.output
done = CliRunner().invoke(main, ["verify", "generated/odd_even_3_float64"])
assert done.exit_code == 0, done.output
from generated import odd_even_3_float64 as module
op = module.operator
torch.manual_seed(0)
x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
target = torch.stack([torch.randperm(3) for _ in range(4)])
truth = (target.unsqueeze(-2) == torch.arange(3).unsqueeze(-1)).double()
loss = op.loss("toy", x, target, 2.0)
plain = (op.sort_with_permutation(x, 2.0)[1] - truth).square().mean()
assert torch.allclose(loss, plain, rtol=1e-12), (loss, plain)
assert torch.equal(module.toy(x, target, 2.0), loss)
assert torch.equal(module.toy(x.t(), target.t(), 2.0, dim=0), loss)
assert torch.autograd.gradcheck(lambda x: op.loss("toy", x, target, 2.0), x)
with torch.autograd.forward_ad.dual_level():  # by the reference
    dual = torch.autograd.forward_ad.make_dual(x.detach(), torch.ones_like(x))
    assert torch.allclose(op.loss("toy", dual, target, 2.0), loss, rtol=1e-12)
""",
    (
        "tests/contract",
        "tests/library/test_library.py",
        "tests/runtime/test_losses.py",
    ),
)

PASS = Addition(
    "A pass",
    {
        "compiler/passes.py": before(
            "def restrict(",
            '''def toy(network: Network) -> Network:
    """Return the network without layers that repeat the layer before."""
    layers: list[list[list[int]]] = []
    for layer in network.layers():
        if not layers or layer.tolist() != layers[-1]:
            layers.append(layer.tolist())
    return Network.from_layers(network.n, layers)


''',
        ),
        "compiler/optimize.py": both(
            after("reflect, relayer, restrict", ", toy"),
            after("    before = counts(network, property_)\n", "    network = toy(network)\n"),
        ),
    },
    """
import nsc
from nsc.compiler.optimize import optimize
from nsc.compiler.verify import Budget, sort
twice = nsc.Network.from_layers(2, [[(0, 1)], [(0, 1)]])
assert optimize(twice, sort(2), Budget()).network.size == 1
""",
    ("tests/compiler/test_optimize.py",),
)

METHOD = Addition(
    "A method of proof",
    {
        "compiler/verify/toy.py": new_file('''"""A toy method: two wires are sorted by one comparator."""

from __future__ import annotations

from nsc.compiler.verify.question import Answer, Question


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
        "study/proofs/certificate.py": after("_PROOFS = {\n", '    "toy": "exhaustion",\n'),
    },
    """
from pathlib import Path
import nsc
proof = nsc.verify("odd_even", 2, certificate="two.cert")
assert (proof.verdict.value, proof.method) == ("proved", "toy"), proof
assert "proof exhaustion" in Path("two.cert").read_text()
""",
    (
        "tests/compiler/test_keeping.py",
        "tests/cli/test_verifying.py",
        "tests/study/test_certificates.py",
    ),
)

ADDITIONS = (RELAXATION, FAMILY, FORMAT, LANGUAGE, LOSS, PASS, METHOD)

"""The stages of the compiler, once in words and once as calls."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from nsc.arguments import integer, wholes
from nsc.compiler.describe import Named, describe, is_family
from nsc.compiler.formats import write_network
from nsc.compiler.network import Network
from nsc.compiler.optimize.candidates import MOST_OPTIMIZED, smallest_first
from nsc.compiler.optimize.redundant import remove_redundant
from nsc.compiler.package import LONGEST_NAME, MANIFEST, Package, check_name, kernel_facts, manifest_text
from nsc.compiler.passes.relayer import relayer
from nsc.compiler.passes.restrict import restrict
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule.ir import schedule
from nsc.compiler.targets.backends import BACKENDS
from nsc.compiler.targets.module import module_text
from nsc.compiler.targets.records import Header
from nsc.compiler.verify import UNTIMED, Budget, Proof, Property, Verdict, parse, sort, verify
from nsc.compiler.verify.question import BudgetError
from nsc.compiler.verify.reachable import FEW_STATES
from nsc.contract.interface import KERNEL_ABI, REALS
from nsc.contract.targets import TARGETS
from nsc.errors import LoweringError, NetworkError, UnprovedError, VerificationError
from nsc.wording import argument, count


@dataclass(frozen=True)
class Request:
    """What to compile.

    Args:
        network, n, format, index_base: what names a network, as `describe` takes it.
        relaxation: how comparators are softened.
        dtypes: arithmetic types to compile for, keys of REALS.
        targets: what machines to compile for, keys of TARGETS.
        name: the package's name; None: made from the network, n and what is not default.
        unproved: whether a network that no exact method settled is accepted.
        version: the version of nsc, for headers.
        select: what is wanted if not all values sorted: "top-K", "median" or "rank-R,R,…".
        wires: where the network's outputs for that are, smallest first, or for ranks as they are named;
            None: where a sorting network has them.
        without_redundant: whether comparators that exchange nothing go, which changes soft values.

    Raises:
        NetworkError: n or an index base that is no integer.
        LoweringError: an unknown dtype or target, no dtype, or a name that no package may have.
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
    select: str | None = None
    wires: Sequence[int] | None = None
    without_redundant: bool = False

    def __post_init__(self) -> None:
        for name in ("n", "index_base"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else integer(name, value, NetworkError))
        for name in ("unproved", "without_redundant"):
            object.__setattr__(self, name, bool(getattr(self, name)))
        unknown = [dtype for dtype in self.dtypes if dtype not in REALS]
        if unknown or not self.dtypes:
            raise LoweringError(
                f"dtypes must be some of {', '.join(REALS)} (float32 also serves bfloat16 and "
                f"float16), got {', '.join(map(repr, self.dtypes)) or 'none'}"
            )
        if not self.targets or any(target not in TARGETS for target in self.targets):
            raise LoweringError(
                f"targets must be some of {', '.join(TARGETS)}, got "
                f"{', '.join(map(repr, self.targets)) or 'none'}"
            )
        if self.name is not None:
            check_name(self.name)
        if self.select is None and self.wires is not None:
            raise LoweringError(
                f"{argument('wires')} says where selected values are: name what is selected, or leave it out"
            )
        if self.wires is not None:
            object.__setattr__(self, "wires", _wholes("wires", self.wires))
        if self.select is not None and not re.fullmatch(r"top-\d+|median|rank-[\d,]+", self.select):
            raise LoweringError(f"what is selected is top-K, median or rank-R,R,…; got {self.select!r}")
        ordered = tuple(dtype for dtype in REALS if dtype in self.dtypes)
        object.__setattr__(self, "dtypes", ordered)
        object.__setattr__(self, "targets", tuple(target for target in TARGETS if target in self.targets))


def _wholes(name: str, values: object) -> tuple[int, ...]:
    """Return an argument that must list whole numbers, none below 0."""
    numbers = wholes(values)
    if not numbers or min(numbers) < 0:
        raise LoweringError(f"{argument(name)} must list integers that are 0 or more, got {values!r}")
    return numbers


def selection(top_k: int | None, median: bool, ranks: Sequence[int] | None) -> str | None:
    """Return what is selected as a request names it; None where nothing is named.

    Raises:
        LoweringError: more than one is named, or what is no whole number.
    """
    named = []
    if top_k is not None:
        k = integer("top_k", top_k, LoweringError)
        if k < 1:
            raise LoweringError(f"{argument('top_k')} must be 1 or more, got {k}")
        named.append(f"top-{k}")
    if median:
        named.append("median")
    if ranks is not None:
        named.append(f"rank-{','.join(map(str, _wholes('ranks', ranks)))}")
    if len(named) > 1:
        choices = ", ".join(map(argument, ("top_k", "median", "ranks")))
        raise LoweringError(f"one of {choices} can be selected at a time, got {len(named)}")
    return named[0] if named else None


def resolved(request: Request) -> Request:
    """Return the request with the network itself where it names a file or lists.

    Equal resolved requests make equal packages, so they can be keys of what was compiled before.

    Raises:
        NetworkError: what names no network.
    """
    if is_family(request.network):
        return request
    network = describe(request.network, request.n, request.format, request.index_base)
    name = package_name(request, network.n)
    return replace(request, network=network, n=None, format=None, index_base=None, name=name)


@dataclass(frozen=True)
class Compiled:
    """What the stages made of a request.

    Attributes:
        network: what was compiled: the network asked for, or what of it the selected values need.
        proof: that it does what it is compiled for.
        package: the generated texts.
    """

    network: Network
    proof: Proof
    package: Package


def compile_network(request: Request, budget: Budget | None = None) -> Compiled:
    """Describe, transform, prove, schedule, render.

    describe:  family, file or lists → Network
    transform: Network + Property → Network, what the wanted values need of it
    prove:     Network + Property → Proof; one without the property is refused, an unproved one unless
               asked for
    schedule:  Network + outputs → Schedule
    render:    Schedule + Relaxation → Package, the texts of the generated folder

    `package.write` puts the result on disk.

    Args:
        request: what to compile.
        budget: what proving may take, and who is told of the stages; None: what it takes by itself, nobody.

    Raises:
        NetworkError: no such family or file, or no network in it.
        PropertyError: ranks or wires that the network does not have.
        VerificationError: the network does not sort, or does not select what it should.
        UnprovedError: no method settled it, and the request does not accept that.
    """
    progress = SILENT if budget is None else budget.progress
    given = describe(request.network, request.n, request.format, request.index_base, progress)
    property_ = _property(request, given.n)
    progress.phase("transform")
    if is_family(request.network) and request.network == "best" and request.select is not None:
        network, proof = _smallest_proved(property_, request, budget)
        return Compiled(network, proof, _render(request, network, property_, proof, progress))
    network = _transform(given, property_, request, budget)
    try:
        proof = prove(network, property_, request.unproved, budget)
    except VerificationError:
        middle = list(property_.ranks)
        if request.select != "median" or len(middle) == 1:
            raise
        # Networks for the median of an even number leave the two middle values in any order.
        given = Network.from_layers(given.n, [*given.layers(), [middle]])
        network = _transform(given, property_, request, budget)
        proof = prove(network, property_, request.unproved, budget)
    return Compiled(network, proof, _render(request, network, property_, proof, progress))


def _property(request: Request, n: int) -> Property:
    """Return what the compiled network must do, each wanted wire with one rank."""
    if request.select is None:
        return sort(n)
    asked = parse(request.select, n, request.wires)
    if asked.ranks:
        return asked
    # The median of an even number: two ranks, which are given out in their order.
    (middle,) = asked.selections
    return parse(f"rank-{middle.first},{middle.first + 1}", n, request.wires)


def _smallest_proved(property_: Property, request: Request, budget: Budget | None) -> tuple[Network, Proof]:
    """Return the network of fewest half operations that is proved, with its proof.

    Of many wires without the methods that a clock ends, so that which it is does not depend on the machine,
    and without long searches, since there are many networks; if none is proved, or on the user's word, that
    of fewest of all.
    """
    networks = smallest_first(property_)
    methods = None if property_.n <= MOST_OPTIMIZED else UNTIMED
    short = replace(Budget() if budget is None else budget, states=FEW_STATES)
    for network in networks if not request.unproved else ():
        try:
            made = _transform(network, property_, request, short)
            return made, prove(made, property_, budget=short, methods=methods)
        except UnprovedError:
            continue
    made = _transform(networks[0], property_, request, budget)
    return made, prove(made, property_, request.unproved, budget)


def _transform(network: Network, property_: Property, request: Request, budget: Budget | None) -> Network:
    """Return what the wanted values need of a network; the network itself where all are."""
    made = network
    if request.without_redundant:
        try:
            made = remove_redundant(made, property_, Budget() if budget is None else budget)
        except BudgetError as ended:
            raise UnprovedError(
                f"redundant comparators are found by reachable sets, which ended at {ended}: compile "
                f"without {argument('without_redundant', True)}"
            ) from None
    if property_.is_sort and made is network:
        return network
    return relayer(restrict(made, property_.ranks))


def prove(
    network: Network,
    property_: Property | None = None,
    unproved: bool = False,
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
) -> Proof:
    """Return the proof that a network has a property; None: that it sorts; methods as of `verify`.

    Raises:
        VerificationError: it has not; the message and the error carry a counterexample.
        UnprovedError: not settled, and `unproved` is false.
    """
    # The same network, the same package: how long a proof took is no part of it.
    proof = replace(verify(network, property_, budget, methods), seconds=None)
    if proof.verdict is Verdict.REFUTED:
        assert proof.counterexample is not None
        assert proof.failing_input is not None
        raise VerificationError(
            f"the network {_sentence(proof)}: 0-1 input {_vector(proof.counterexample)} and integer "
            f"input {_vector(proof.failing_input)} come out "
            f"{'unsorted' if proof.property == 'sort' else 'wrong'}",
            proof.counterexample,
            proof.failing_input,
        )
    if proof.verdict is Verdict.UNPROVED and not unproved:
        raise UnprovedError(
            f"the network is unproved: {proof.detail}. To compile it all the same, on your word that "
            f"it {'sorts' if proof.property == 'sort' else f'selects {proof.property}'}, add "
            f"{argument('unproved', True)}"
        )
    return proof


def _sentence(proof: Proof) -> str:
    return "does not sort" if proof.property == "sort" else f"does not select {proof.property}"


def _vector(values: tuple[int, ...]) -> str:
    shown = " ".join(map(str, values[:64]))
    return shown if len(values) <= 64 else f"{shown} … ({len(values)} values)"


def _render(
    request: Request, network: Network, property_: Property, proof: Proof, progress: Progress
) -> Package:
    name = package_name(request, network.n)
    outputs = _outputs(request, property_)
    relaxation = request.relaxation
    purpose = _purpose(request, network.n)
    header = Header(name, purpose, _command(request, name), request.version, _proof_line(proof))
    sources = {target: f"{name}{TARGETS[target].suffix}" for target in request.targets}
    progress.phase("schedule")
    made = schedule(network, None if outputs is None else tuple(outputs))
    progress.phase("render")
    facts: dict[str, object] = {
        "name": name,
        "nsc": request.version,
        "command": header.command,
        "n": network.n,
        "size": network.size,
        "depth": network.depth,
        "outputs": None if outputs is None else [list(output) for output in outputs.items()],
        "network": network.digest,
        "proof": proof.verdict.value,
        "sigmoid": relaxation.sigmoid,
        "art_lambda": relaxation.art_lambda,
        "error_free": relaxation.error_free,
        "reals": {real: list(REALS[real].serves) for real in request.dtypes},
        "abi": KERNEL_ABI,
        "sources": sources,
        "cuda": {},
    }
    network_text = write_network(network)
    texts = {}
    for target, file in sources.items():
        backend = BACKENDS[target]
        lowered = backend.lower(made, relaxation)
        parameters = backend.launch(lowered)
        launch = None if parameters is None else asdict(parameters)
        if launch is not None:
            facts[target] = launch
        stated = kernel_facts(facts, network_text, launch)
        texts[file] = backend.render(header, stated, lowered, relaxation, request.dtypes)
    files = {
        "__init__.py": module_text(header, network, outputs, relaxation, request.dtypes, request.targets),
        **texts,
        "network.json": network_text,
        "proof.json": proof.to_json(),
    }
    files[MANIFEST] = manifest_text(facts, files)
    return Package(name, MappingProxyType(files))


def _outputs(request: Request, property_: Property) -> dict[int, int] | None:
    """Return the wires that are given out, in order, with their ranks: the largest of a top-k first."""
    if request.select is None:
        return None
    outputs = list(property_.ranks.items())
    return dict(outputs[::-1] if request.select.startswith("top-") else outputs)


def package_name(request: Request, n: int) -> str:
    """Return the name of a request's package: the one it states, or that of its network on n wires."""
    return request.name or default_name(request, n)


def default_name(request: Request, n: int) -> str:
    """Return a package's name: the family or the file's stem, made an identifier, n, and what is not default.

    Two packages that compute different values so have different names; one for more targets has the same.
    """
    what = _not_default(request)
    stem = Path(request.network).stem if isinstance(request.network, str | os.PathLike) else "network"
    longest = LONGEST_NAME - len(f"network__{n}{what}")
    word = re.sub(r"[^A-Za-z0-9_]+", "_", stem).strip("_")[:longest] or "network"
    if word[0].isdigit() or keyword.iskeyword(word):
        word = f"network_{word}"
    word = word if word.endswith(f"_{n}") else f"{word}_{n}"
    return f"{word}{what}"


def _not_default(request: Request) -> str:
    """Return what a request asks for beyond the defaults, each with _ in front."""
    default, relaxation, words = Relaxation(), request.relaxation, [""]
    if request.select is not None:
        what = re.sub(r"\W", "_", request.select)
        words.append(what if len(what) <= 12 else f"{1 + request.select.count(',')}_ranks")
    if request.without_redundant:
        words.append("without_redundant")
    if relaxation.sigmoid != default.sigmoid:
        words.append(relaxation.sigmoid)
    if relaxation.art_lambda != default.art_lambda:
        words.append(f"art_{re.sub(r'[^0-9e]', '_', repr(relaxation.art_lambda).removesuffix('.0'))}")
    if relaxation.error_free:
        words.append("error_free")
    if request.dtypes != ("float32",):
        words += request.dtypes
    return "_".join(words)


def _command(request: Request, name: str) -> str:
    """Return a command that makes the package again.

    Of a user's network only the copy inside the package is named: neither a path of the machine nor
    a file's name reaches the generated text.
    """
    family = request.network if is_family(request.network) else None
    words = ["nsc compile", f"--net {family} --n {request.n}" if family else "--net network.json"]
    if request.name is not None or not family:
        words.append(f"--name {name}")
    default, relaxation = Relaxation(), request.relaxation
    if relaxation.sigmoid != default.sigmoid:
        words.append(f"--relaxation {relaxation.sigmoid}")
    if relaxation.art_lambda != default.art_lambda:
        words.append(f"--art-lambda {relaxation.art_lambda!r}")
    if relaxation.error_free:
        words.append("--error-free")
    if request.dtypes != ("float32",):
        words += [f"--dtype {dtype}" for dtype in request.dtypes]
    if request.targets != ("cpu",):
        words.append(f"--target {','.join(request.targets)}")
    if request.select is not None:
        kind, _, values = request.select.partition("-")
        words.append({"top": f"--top-k {values}", "rank": f"--ranks {values}"}.get(kind, "--median"))
    if request.wires is not None:
        words.append(f"--wires {','.join(map(str, request.wires))}")
    if request.without_redundant:
        words.append("--remove-redundant")
    if request.unproved:
        words.append("--unproved")
    return " ".join(words)


def _proof_line(proof: Proof) -> str:
    if proof.verdict is Verdict.PROVED:
        what = "sorts every input" if proof.property == "sort" else f"{proof.property} of every input"
        return f"{what}, by {proof.method}: {proof.detail}"
    return f"UNPROVED: {proof.detail}"


def _purpose(request: Request, n: int) -> str:
    if request.select is None:
        return f"sorting of {count(n, 'value')}"
    kind, _, detail = request.select.partition("-")
    many = detail.count(",")
    what = {"top": "the largest" if detail == "1" else f"the {detail} largest", "median": "the median"}.get(
        kind, f"{1 + many} ranks" if many else f"rank {detail}"
    )
    return f"selection of {what} of {count(n, 'value')}"

"""The stages of the compiler for filters: plan, prove, render."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from nsc import library
from nsc.compiler.formats import write_network
from nsc.compiler.naming import Head, proof_line
from nsc.compiler.network import Network
from nsc.compiler.package import Package, check_name
from nsc.compiler.passes import half_operations
from nsc.compiler.verify import Budget, Proof
from nsc.compiler.windows.fusing import fuse, operations, plan
from nsc.compiler.windows.plan import Plan
from nsc.compiler.windows.proving import prove_plan, whole_network
from nsc.compiler.windows.rendering import render
from nsc.contract.manifest import MANIFEST, NETWORK, PROOF, FilterManifest, digest
from nsc.contract.windows import FilterSource, Window
from nsc.templates import fill


@dataclass(frozen=True)
class CompiledFilter:
    """The results of the stages for a window.

    Attributes:
        window: what is selected.
        plan: what the filter runs.
        network: the comparators of one window, wire w its value w.
        outputs: the wire of each selected rank.
        proofs: for each row of results of a step, that its windows give the ranks.
        source: the generated text.
        manifest: the package's manifest; it lists only the files that every package has.
        package: the texts of the generated folder.
    """

    window: Window
    plan: Plan
    network: Network
    outputs: tuple[int, ...]
    proofs: tuple[Proof, ...]
    source: FilterSource
    manifest: FilterManifest
    package: Package

    @property
    def whole_operations(self) -> int:
        """Minima and maxima of a window that shares nothing."""
        return half_operations(self.network, self.outputs)

    @cached_property
    def operations(self) -> float:
        """Minima and maxima that the kernel takes for a pixel."""
        return operations(self.plan, fuse(self.plan))


def compile_filter(
    window: Window, name: str | None = None, version: str = "0", budget: Budget | None = None
) -> CompiledFilter:
    """Return the filter of a window.

    Args:
        window: the window and its ranks.
        name: of the filter, a Python identifier; None: such as median_3x3.
        version: of nsc.
        budget: what the proofs may take, and who is told of the stages; None: the defaults, and nobody.

    Raises:
        UnprovedError: no method settled a network of it within the budget.

    Cost: half a second for 7x7, three for 15x15.
    """
    budget = Budget() if budget is None else budget
    budget.progress.phase("plan")
    planned = plan(window.folded)
    budget.progress.phase("prove")
    proofs = prove_plan(planned, budget)
    budget.progress.phase("render")
    network, outputs = whole_network(planned)
    check_name(name := name or window.label)
    texts = {NETWORK: write_network(network), PROOF: proofs[0].to_json()}
    command = f"nsc filter {window.size_text} --rank {window.rank}"
    manifest = FilterManifest(
        name=name,
        nsc=version,
        library=library.digest(),
        command=command if name == window.label else f"{command} --name {name}",
        network=network.digest,
        proof=proofs[0].verdict.value,
        targets=("cpu",),
        files={file: digest(text) for file, text in texts.items()},
        window=window.key,
        outputs=outputs,
    )
    head = Head(name, window.words, manifest.command, version, proof_line(proofs[0]), network)
    source = FilterSource(name, window, render(head, manifest.stated(), planned))
    axes = "planes, rows, columns" if window.planes > 1 else "rows, columns"
    module = fill("windows/filter.py.j2", head=head, window=window, axes=axes)
    files = {"__init__.py": module, f"{name}.cpp": source.text, **texts}
    package = Package(name, MappingProxyType(files | {MANIFEST: manifest.with_files(files).to_text()}))
    return CompiledFilter(window, planned, network, outputs, proofs, source, manifest, package)

"""Rendering: from a schedule to a package, the source text of each target with the facts that it states."""

from __future__ import annotations

from types import MappingProxyType

from nsc import library
from nsc.compiler.describe import is_family
from nsc.compiler.formats import LONGEST_LISTED, named, write_network
from nsc.compiler.naming import header_of
from nsc.compiler.network import Network
from nsc.compiler.package import Package
from nsc.compiler.relaxed import cpp
from nsc.compiler.relaxed.backends import BACKENDS
from nsc.compiler.relaxed.interface import interface_text
from nsc.compiler.relaxed.module import module_text
from nsc.compiler.request import Request
from nsc.compiler.schedule import Schedule
from nsc.compiler.verify import Proof
from nsc.contract.manifest import MANIFEST, NETWORK, PROOF, TABLES, RelaxedManifest, digest, engine_source


def render(request: Request, schedule: Schedule, proof: Proof) -> Package:
    """Return the package of a schedule; the same arguments, the same texts.

    Args:
        request: what was compiled, and for what targets.
        schedule: the network as kernels run it.
        proof: that it does what it was compiled for.

    Raises:
        LoweringError: a target cannot take a network of this size.
    """
    network, relaxation = schedule.network, request.relaxation
    header, outputs = header_of(request, network.n, proof), request.outputs(network.n)
    name = header.name
    backends = {target: BACKENDS[target] for target in request.targets}
    lowered = {target: backend.lower(schedule, relaxation) for target, backend in backends.items()}
    launches = {target: backend.launch(lowered[target]) for target, backend in backends.items()}
    texts = {NETWORK: network_text(request, network), PROOF: proof.to_json()}
    if "cpu" in request.targets:
        texts[TABLES] = lowered["cpu"].tables.to_text()
        texts |= {engine_source(real): cpp.engine(relaxation, real) for real in request.dtypes}
    manifest = RelaxedManifest(
        name=name,
        nsc=request.version,
        library=library.digest(),
        command=header.command,
        n=network.n,
        size=network.size,
        depth=network.depth,
        selection=None if request.select is None else request.select.form,
        outputs=None if outputs is None else tuple(outputs.items()),
        network=network.digest,
        proof=proof.verdict.value,
        sigmoid=relaxation.sigmoid,
        art_lambda=relaxation.art_lambda,
        error_free=relaxation.error_free,
        reals=request.dtypes,
        targets=request.targets,
        cuda=launches.get("cuda"),
        files={name: digest(text) for name, text in texts.items()},
    )
    sources = {
        manifest.sources[target]: backend.render(
            header, manifest.stated(target), lowered[target], relaxation, request.dtypes
        )
        for target, backend in backends.items()
    }
    if request.single_file:
        sources = {name: library.expanded(text) for name, text in sources.items()}
    others = {}
    if "cpu" in request.targets:
        others[f"{name}_c.h"] = interface_text(header, network.n, outputs, request.dtypes)
    files = {
        "__init__.py": module_text(header, network, outputs, relaxation, request.dtypes, request.targets),
        **sources,
        **others,
        **texts,
    }
    files[MANIFEST] = manifest.with_files(files).to_text()
    return Package(name, MappingProxyType(files))


def network_text(request: Request, network: Network) -> str:
    """Return the text of a package's network: its comparators, or the name of a family whose list is long."""
    family = request.network
    is_whole = request.select is None and not request.remove_redundant
    if isinstance(family, str) and is_family(family) and is_whole and network.size > LONGEST_LISTED:
        return named(family, network)
    return write_network(network)

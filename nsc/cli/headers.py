"""The part of nsc compile that writes C headers."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from nsc.cli.shared import counts_of
from nsc.compiler.driver import compile_header
from nsc.compiler.package import replaces_header, write_header
from nsc.compiler.request import Request
from nsc.compiler.verify import Budget


def write_c_header(request: Request, budget: Budget, folder: Path, as_json: bool, start: float) -> None:
    """Write a C header and print what it is, as packages are printed."""
    compiled = compile_header(request, budget)
    budget.progress.phase("write")
    replaced = replaces_header(compiled.header, folder)
    place = write_header(compiled.header, folder)
    network, proof, seconds = compiled.network, compiled.proof, time.perf_counter() - start
    if as_json:
        facts = {
            "name": compiled.header.name,
            "header": str(place),
            "replaced": replaced,
            **counts_of(network),
            "proof": proof.facts(),
            "targets": request.targets,
            "dtypes": request.dtypes,
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(facts, indent=1))
        return
    click.echo(f"{place}: {network.counts}")
    click.echo(f"{proof.sentence()}: {proof.method}: {proof.detail}")
    if replaced:
        click.echo(f"replaced: {place} held another header")
    call = f"{compiled.header.name}_{request.dtypes[0]}(x, values)"
    click.echo(f'written, in {seconds:.2f} s; use it with: #include "{place.name}" and {call}')

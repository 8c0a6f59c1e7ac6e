"""`python -m benchmarks.certificates`: proofs, their certificates, and what both checkers take for these."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.progress import track

import nsc
from benchmarks.machine import machine
from benchmarks.report import paragraph
from nsc.atomic import write_whole
from nsc.compiler.families import KINDS, found, known
from nsc.compiler.network import Network
from nsc.compiler.verify import Property, parse
from nsc.join.budget import budget_of
from nsc.runtime.build.toolchain import find_toolchain
from nsc.study.proofs import certify

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "certificates.md"
CHECKER = ROOT / "tools" / "check_certificate"
HEAD = (
    "Each certificate is checked by a process of its own. All times are CPU seconds. `–`: it says that the "
    "proof is too large."
)

Case = tuple[str, list[tuple[Network, Property]]]


@click.command()
def main() -> None:
    """Prove some networks, check their certificates, and write what that takes."""
    lines = ["| networks | method | proof | KB | Python | C |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder) / "check"
        compiler = [find_toolchain().command[0], "-x", "c", "-O2", f"{CHECKER}.c", "-o", str(compiled)]
        subprocess.run(compiler, check=True)
        for name, asked in track(list(_cases()), "certificates", transient=True):
            lines.append(_row(name, asked, Path(folder), compiled))
    text = "\n\n".join(
        ["# Certificates", paragraph(f"`python -m benchmarks.certificates` on {machine()}. {HEAD}")]
    )
    write_whole(RESULTS, text + "\n\n" + "\n".join(lines) + "\n")
    click.echo(f"wrote {RESULTS}")


def _cases() -> Iterator[Case]:
    for family, n in (
        ("bitonic", 1024),
        ("bitonic", 65536),
        ("odd_even_merge", 65536),
        ("odd_even", 1024),
        ("best", 24),
        ("best", 64),
        ("pairwise", 64),
        ("pairwise", 128),
    ):
        yield f"{family} {n}", [(nsc.network(family, n), parse("sort", n))]
    yield "top 8 of 64, pairwise", [(nsc.network("pairwise", 64), parse("top-8", 64))]
    for kind in KINDS:
        every = [(network, parse(kind, n)) for n, networks in known(kind).items() for network in networks]
        yield f"known networks up to 64 wires, {kind}", every
    smaller = [(each.network, parse(kind, each.network.n)) for kind in KINDS for each in found(kind)]
    yield "networks smaller than published", smaller


def _row(name: str, asked: list[tuple[Network, Property]], folder: Path, compiled: Path) -> str:
    files, methods, seconds = [], list[str](), 0.0
    for number, (network, property_) in enumerate(asked):
        start = time.process_time()
        proof, text = certify(network, property_, budget_of())
        seconds += time.process_time() - start
        assert text is not None, f"{name}: {proof.detail}"
        files.append(folder / f"{number}.cert")
        files[-1].write_text(text, encoding="ascii")
        methods.append(proof.method)
    size = sum(file.stat().st_size for file in files) / 1000
    checked = [
        _checked(command, files) for command in ([sys.executable, f"{CHECKER}.py"], [os.fspath(compiled)])
    ]
    shown = ["–" if each is None else f"{each:.2f}" for each in checked]
    words = ", ".join(dict.fromkeys(methods))
    return f"| {name} | {words} | {seconds:.2f} | {size:,.0f} | {' | '.join(shown)} |"


def _checked(command: list[str], files: list[Path]) -> float | None:
    """Return the seconds that a checker takes for all files; None if one is too large for it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for file in files:
        done = subprocess.run([*command, file], capture_output=True, text=True, check=False)
        if done.returncode == 2:
            return None
        assert done.returncode == 0, f"{file}: {done.stdout}"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()

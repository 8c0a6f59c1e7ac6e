"""`python -m benchmarks.nvrtc`: seconds of a processor that NVRTC takes for each part of a CUDA kernel.

Prints a table. The quickest of ROUNDS compilations counts; all are for float32 and one architecture.
"""

from __future__ import annotations

import time

import click

import nsc
from nsc.contract.launch import PARTS
from nsc.runtime.relaxed.cubin import compiler_of

NETWORKS = (("bitonic", 16), ("bitonic", 128), ("bitonic", 1024), ("odd_even", 256))
ARCHITECTURE = "sm_90"
ROUNDS = 3


@click.command()
def main() -> None:
    """Compile each part of each network, and print the seconds."""
    parts = list(PARTS)
    click.echo(f"| network | {' | '.join(parts)} | together |\n|---|{'---:|' * (len(parts) + 1)}")
    for family, n in NETWORKS:
        kernel = nsc.compile(family, n, targets=("cuda",), unproved=True).kernel
        text = kernel.sources["cuda"]
        seconds = []
        for part in parts:
            compiler = compiler_of(kernel, ARCHITECTURE, part)
            rounds = []
            for _ in range(ROUNDS):
                start = time.process_time()
                compiler.compiled(text)
                rounds.append(time.process_time() - start)
            seconds.append(min(rounds))
        figures = " | ".join(f"{each:.1f}" for each in (*seconds, sum(seconds)))
        click.echo(f"| {family} {n} | {figures} |")


if __name__ == "__main__":
    main()

"""`python -m benchmarks.cells`: how many cells Yosys makes of circuits, nsc's and others'.

Others' files are not part of nsc. A peer is named by its task, bits of a value, name, top and files, such as

    --peer 'median of 9' 8 'owner/repository' 'module' 'first.v,second.v'

Files in VHDL go through GHDL first; generics follow the top, as in 'entity DATA_WIDTH=8'.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

import nsc
from nsc.atomic import write_whole
from nsc.compiler.selection import Selection

RESULTS = Path(__file__).parent / "results" / "cells.md"
# Task to n and what is selected.
TASKS = {
    "sort of 8": (8, None),
    "median of 9": (9, nsc.median()),
    "median of 25": (25, nsc.median()),
    "top 4 of 16": (16, nsc.top_k(4)),
}
BITS = (8, 16)
# Layers in a stage, in words.
PIPELINES = {0: "combinational", 1: "registers behind each layer"}


class Cells(NamedTuple):
    """Flip-flops, gates of two inputs at most, and tables of six inputs."""

    flip_flops: int
    gates: int
    tables: int


@click.command()
@click.option("--peer", "peers", nargs=5, multiple=True, metavar="TASK BITS NAME TOP FILES")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default=RESULTS)
def main(peers: Sequence[tuple[str, str, str, str, str]], out: Path) -> None:
    """Count the cells of nsc's circuits, and of peers, by the same commands."""
    lines = [
        "| task | bits | circuit | flip-flops | gates | LUTs |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    for task, (n, select) in TASKS.items():
        for bits in BITS:
            for layers, words in PIPELINES.items():
                lines.append(_row(task, bits, f"nsc, {words}", _ours(n, select, bits, layers)))
            for named, width, name, top, files in peers:
                if (named, width) == (task, str(bits)):
                    entity, *generics = top.split()
                    paths = [Path(file).resolve() for file in files.split(",")]
                    lines.append(_row(task, bits, name, _cells(paths, entity, generics)))
    yosys = subprocess.check_output(["yosys", "-V"], text=True).partition(" (")[0]
    text = _TEXT.format(nsc=nsc.__version__, yosys=yosys, rows="\n".join(lines))
    write_whole(out, text)
    click.echo(text)


_TEXT = """# Cells

`python -m benchmarks.cells` with {yosys}, nsc {nsc}. Flip-flops, and the cells between them:
`synth -flatten; abc -g gates` for gates of one and two inputs, `synth -flatten -lut 6` for tables of six.
Keys are unsigned, without tags.

{rows}
"""


def _ours(n: int, select: Selection | None, bits: int, layers: int) -> Cells:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ours.v"
        path.write_text(nsc.emit("verilog", "best", n, select=select, name="ours"))
        return _cells([path], "ours", [f"KEY_WIDTH={bits}", f"LAYERS_PER_STAGE={layers}"])


def _cells(files: Sequence[Path], top: str, generics: Sequence[str]) -> Cells:
    """Return what a circuit in Verilog, or in VHDL, takes."""
    with tempfile.TemporaryDirectory() as folder:
        if files[0].suffix in (".vhd", ".vhdl"):
            options = ["--std=08", "-frelaxed", "-fsynopsys", f"--workdir={folder}"]
            subprocess.run(["ghdl", "-a", *options, *files], check=True)
            made = ["ghdl", "--synth", *options, *(f"-g{each}" for each in generics), "--out=verilog", top]
            files, generics = [Path(folder) / "made.v"], []
            files[0].write_text(subprocess.check_output(made, text=True))
        read = f"read_verilog -sv {' '.join(map(str, files))};"
        for name, value in (each.split("=") for each in generics):
            read += f" chparam -set {name} {value} {top};"
        flip_flops, gates = _count(f"{read} synth -flatten -top {top}; abc -g gates; opt_clean", folder)
        return Cells(
            flip_flops, gates, _count(f"{read} synth -flatten -top {top} -lut 6; opt_clean", folder)[1]
        )


def _count(commands: str, folder: str) -> tuple[int, int]:
    """Return how many flip-flops and other cells commands of Yosys leave."""
    report = Path(folder) / "report.json"
    subprocess.run(["yosys", "-q", "-p", f"{commands}; tee -q -o {report} stat -json"], check=True)
    text = report.read_text()
    cells = json.loads(text[text.index("{") :])["design"]["num_cells_by_type"]
    flip_flops = sum(number for kind, number in cells.items() if "DFF" in kind)
    return flip_flops, sum(cells.values()) - flip_flops


def _row(task: str, bits: int, name: str, cells: Cells) -> str:
    return f"| {task} | {bits} | {name} | {' | '.join(f'{number:,}' for number in cells)} |"


if __name__ == "__main__":
    main()

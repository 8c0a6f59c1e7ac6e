"""Run a page of documentation as its reader would: its shell lines and its Python, in order, in one session.

    python tests/page.py docs/networks.md

Commands write to the working directory. Blocks of Python, code cells among them, share their names. A block
of C or C++ is a file, which its first line names: /* main.c */. A compiler reads it with the headers of torch
and of what the page has written so far. A block of Verilog or VHDL is a file too, which later lines read.
Lines of `make`, `pip` and `python` are not run: they install or measure. Tests of other languages run those
of their compilers; those of hardware tools run here, where these are installed. A shell line whose comment
says `exit code N` must end with N.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from nsc.cli.main import main

NOT_RUN = ("make", "pip", "python", "PYTHONPATH=.", "nvcc", "rustc")
RUN = ("nsc", "echo", "cc", "./")
HARDWARE = ("verilator", "yosys", "ghdl")
_COMPILERS = {"c": ("cc", "-std=c11"), "cpp": ("c++", "-std=c++20")}


@dataclass(frozen=True)
class Step:
    """A piece of a page: one line of shell or one block of Python, which run, or one file of C, C++,
    Verilog or VHDL.

    Attributes:
        kind: "sh", "python", "c", "cpp", "verilog" or "vhdl".
        text: the line, or the block.
        line: where it begins in the page, counted from 1.
    """

    kind: str
    text: str
    line: int


def steps(text: str) -> Iterator[Step]:
    """Yield the steps of a page in order."""
    fences = r"^```(sh|python|c|cpp|verilog|vhdl|\{code-cell\})\n((?::.*\n)*)(.*?)^```$"
    for fence in re.finditer(fences, text, re.DOTALL | re.MULTILINE):
        kind, code = fence[1], fence[3]
        first = text.count("\n", 0, fence.start(3)) + 1
        if kind != "sh":
            yield Step("python" if kind == "{code-cell}" else kind, code, first)
            continue
        for number, line in enumerate(code.splitlines(), first):
            if not line.startswith(NOT_RUN):
                yield Step("sh", line, number)


def run(page: Path) -> None:
    """Run a page's steps in the working directory; an error names the page and the line."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for step in steps(page.read_text(encoding="utf-8")):
        if step.kind == "sh":
            _run_shell(page, step)
            importlib.invalidate_caches()  # the line may have written packages
        elif step.kind in _COMPILERS:
            _run_compiler(page, step)
        elif step.kind in ("verilog", "vhdl"):
            Path(step.text.split()[1]).write_text(step.text, encoding="utf-8")
        else:
            # Empty lines in front give tracebacks the page's line numbers.
            exec(compile("\n" * (step.line - 1) + step.text, str(page), "exec"), names)


def _run_compiler(page: Path, step: Step) -> None:
    file = Path(step.text.split()[1])
    file.write_text(step.text, encoding="utf-8")
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    assert torch.submodule_search_locations is not None
    folders = ["-Iinclude", *(f"-I{each}" for each in Path("generated").glob("*") if each.is_dir())]
    command = [*_COMPILERS[step.kind], *folders, "-isystem", f"{torch.submodule_search_locations[0]}/include"]
    process = subprocess.run([*command, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", file])
    if process.returncode:
        raise SystemExit(f"{page}:{step.line}: {file} does not compile")


def _run_shell(page: Path, step: Step) -> None:
    if not step.text.startswith((*RUN, *HARDWARE)):
        raise SystemExit(
            f"{page}:{step.line}: {step.text!r} begins with none of {', '.join((*RUN, *HARDWARE, *NOT_RUN))}"
        )
    if step.text.startswith(HARDWARE) and shutil.which(step.text.split()[0]) is None:
        return
    comment = re.search(r"#.*exit code (\d)", step.text)
    expected = int(comment[1]) if comment else 0
    words = shlex.split(step.text, comments=True)
    if words[0] == "nsc" and not {"<", ">", "|"} & {*words}:
        # Run the command in this process: to start another takes longer than most commands.
        result = CliRunner().invoke(main, words[1:])
        code, output = result.exit_code, result.output
    else:
        process = subprocess.run(
            ["bash", "-c", f'nsc() {{ "{sys.executable}" -m nsc "$@"; }}\n{step.text}'],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        code, output = process.returncode, process.stdout
    print(f"$ {step.text}\n{output}", end="")
    if code != expected:
        raise SystemExit(f"{page}:{step.line}: {step.text!r} ended with {code}: {output}")


if __name__ == "__main__":
    sys.path.insert(0, "")  # packages that the page writes
    run(Path(sys.argv[1]))

"""Catches Rust that sorts wrongly, that rustfmt would change, or that branches on integers."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from nsc.compiler.emit import compile_emitted, plan
from nsc.compiler.request import Request
from nsc.compiler.selection import median, ranks, top_k

PROGRAM = Path(__file__).with_name("sorted.rs")
# Name to network, n and what is selected.
NETWORKS = {
    "one": (("best", 1), None),
    "eight": (("best", 8), None),
    "twelve": (("bitonic", 12), None),
    "middle": (("best", 9), median()),
    "some": (("bitonic", 6), ranks(5, 0, 2)),
    "top": (("best", 16), top_k(4)),
    "table": (("odd_even", 39), None),
    "table_some": (("odd_even", 12), ranks(11, 0, 5)),
    "table_middle": (("bitonic", 7), median()),
}


@cache
def module(name):
    network, select = NETWORKS[name]
    with pytest.MonkeyPatch.context() as patch:
        if name.startswith("table_"):
            patch.setattr(plan, "STRAIGHT_LINE", 0)
        text = compile_emitted(Request(*network, select=select, language="rust", name=name)).text
    assert ("const COMPARATORS" in text) == name.startswith("table")
    return text


def run(tool, *arguments, folder):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed: apt-get install {tool}")
    done = subprocess.run([tool, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout[:2000]}{done.stderr[:4000]}"
    return done.stdout + done.stderr


def check_of(name):
    """Return the line of a program that checks a module."""
    (_, n), select = NETWORKS[name]
    wanted = range(n) if select is None else select.outputs(n).values()
    verb, results = ("sort", "many") if select is None else ("select", "one" if len(wanted) == 1 else "many")
    functions = f"{verb}, {verb}_by_key, {verb}_f32, {verb}_f64"
    return f"check_module!({name}, {n}, {[*wanted]}, {results}, {functions});"


@pytest.mark.slow("rustc builds a program")
def test_every_function_is_the_standard_librarys_sort(tmp_path):
    """All 0-1 inputs up to 12 values; random bytes, words, texts, values without copies, keys, floats."""
    for name in NETWORKS:
        (tmp_path / f"{name}.rs").write_text(module(name), encoding="utf-8")
    modules = "".join(f"mod {name};\n" for name in NETWORKS)
    checks = "".join(f"fn check_{name}() {{ {check_of(name)} }}\n" for name in NETWORKS)
    calls = "".join(f"    check_{name}();\n" for name in NETWORKS)
    program = f"{modules}{PROGRAM.read_text(encoding='utf-8')}{checks}fn main() {{\n{calls}}}\n"
    (tmp_path / "main.rs").write_text(program, encoding="utf-8")
    said = run("rustc", "--edition", "2021", "-D", "warnings", "main.rs", folder=tmp_path)
    assert said == ""
    assert run(tmp_path / "main", folder=tmp_path) == ""


def test_rustfmt_changes_nothing(tmp_path):
    for name in NETWORKS:
        (tmp_path / f"{name}.rs").write_text(module(name), encoding="utf-8")
    files = [f"{name}.rs" for name in NETWORKS]
    assert run("rustfmt", "--edition", "2021", "--check", *files, folder=tmp_path) == ""


def test_a_crate_without_std_takes_a_text(tmp_path):
    """One that uses few of the functions, too."""
    (tmp_path / "eight.rs").write_text(module("eight"), encoding="utf-8")
    text = "#![no_std]\nmod eight;\npub fn least(x: [u8; 8]) -> u8 { eight::sort(x)[0] }\n"
    (tmp_path / "lib.rs").write_text(text, encoding="utf-8")
    options = ("--edition", "2018", "--crate-type", "lib", "--emit", "metadata", "-D", "warnings")
    assert run("rustc", *options, "lib.rs", folder=tmp_path) == ""


def test_the_pages_program_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs/languages.md").read_text(encoding="utf-8")
    program = re.search(r"^```rust\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    (tmp_path / "main.rs").write_text(program, encoding="utf-8")
    for n, select in ((8, None), (9, median())):
        emitted = compile_emitted(Request("best", n, select=select, language="rust"))
        (tmp_path / emitted.file).write_text(emitted.text, encoding="utf-8")
    assert run("rustc", "--edition", "2021", "main.rs", folder=tmp_path) == ""
    assert run(tmp_path / "main", folder=tmp_path) == "5\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the code of x86-64")
def test_integers_and_floats_are_sorted_without_a_branch(tmp_path):
    """A comparator is two conditional moves, half of one is one."""
    for name in ("eight", "middle"):
        (tmp_path / f"{name}.rs").write_text(module(name), encoding="utf-8")
    text = """
mod eight;
mod middle;
#[no_mangle] pub fn sort_u32(x: &mut [u32; 8]) { *x = eight::sort(*x); }
#[no_mangle] pub fn sort_f64(x: &mut [f64; 8]) { *x = eight::sort_f64(*x); }
#[no_mangle] pub fn select_i64(x: &[i64; 9]) -> i64 { middle::select(*x) }
"""
    (tmp_path / "lib.rs").write_text(text, encoding="utf-8")
    options = ("--edition", "2021", "--crate-type", "lib", "--emit", "asm", "-C", "opt-level=3")
    run("rustc", *options, "lib.rs", folder=tmp_path)
    code = (tmp_path / "lib.s").read_text(encoding="utf-8")
    halves = {"sort_u32": 2 * 19, "sort_f64": 2 * 19, "select_i64": 30}
    for function, moves in halves.items():
        body = re.search(rf"^{function}:\n(.*?)\.cfi_endproc", code, re.M | re.S)[1]
        assert not re.search(r"\tj[a-z]+\t", body), function
        assert len(re.findall(r"\tcmov", body)) == moves, function

"""Catches texts in any language that do not say where they come from, or that a compiler warns of."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import nsc
from nsc.cli.main import main
from nsc.compiler.emit import LANGUAGES, compile_emitted
from nsc.compiler.request import Request
from nsc.compiler.selection import median, ranks, top_k
from nsc.errors import LoweringError

# The packages of Debian that have the tools of the languages' commands.
PACKAGES = {name: name for name in ("gcc", "g++", "rustc", "verilator", "ghdl")}
NETWORKS = {
    "four": ("best", 4, None),
    "one": ("best", 1, None),
    "middle": ("best", 9, median()),
    "some": ("bitonic", 6, ranks(5, 0, 2)),
    "top": ("bitonic", 12, top_k(3)),
}


def request_of(language, network, **options):
    name, n, select = NETWORKS[network]
    return Request(name, n, select=select, language=language, name=network, **options)


@pytest.mark.parametrize("language", LANGUAGES)
def test_golden_text(language, golden):
    types = {"dtypes": ("float64",)} if LANGUAGES[language].has_types else {}
    golden(f"best_4{LANGUAGES[language].suffix}", compile_emitted(request_of(language, "four", **types)).text)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_states_its_origin_and_passes_its_command(language, network, tmp_path):
    emitted = compile_emitted(request_of(language, network))
    lines = emitted.text.splitlines()
    assert lines[0].lstrip("/*-! ").startswith(f"{network}{LANGUAGES[language].suffix}: exact s")
    family, n, select = NETWORKS[network]
    made_by = f"Made by: nsc emit {language} {family} --n {n} --name {network}"
    made_by += f" {select.option}" if select else ""
    assert lines[2].lstrip("/*-! ") == made_by
    head = "\n".join(lines[:9])
    assert f"Network: {emitted.network.counts}, sha256 {emitted.network.digest}\n" in head
    assert f" of every input, by {emitted.proof.method}: " in head or "sorts every input, by " in head
    assert "SPDX-License-Identifier: MIT\n" in head
    (tmp_path / emitted.file).write_text(emitted.text, encoding="utf-8")
    words = LANGUAGES[language].check.format(file=emitted.file).split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed: apt-get install {PACKAGES[words[0]]}")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_command_says_how_a_program_uses_the_file_and_writes_it_again(language, tmp_path):
    place = tmp_path / f"it{LANGUAGES[language].suffix}"
    for network, verb, said in (("best --n 4", "sort", ""), ("best --n 5 --median", "select", "replaced: ")):
        line = f"emit {language} {network} --out {place}"
        done = CliRunner().invoke(main, line.split())
        assert done.exit_code == 0, done.output
        words = {"file": place.name, "name": "it", "dtype": "float32", "verb": verb}
        assert done.stdout.endswith(f"use it with: {LANGUAGES[language].use.format_map(words)}\n")
        assert (said in done.stdout) if said else ("replaced" not in done.stdout)
    place.write_text("of a user\n" * 4, encoding="utf-8")
    assert CliRunner().invoke(main, line.split()).exit_code != 0
    assert place.read_text(encoding="utf-8").startswith("of a user")


def test_the_page_has_every_language():
    page = (Path(__file__).parents[2] / "docs/languages.md").read_text(encoding="utf-8")
    for name, language in LANGUAGES.items():
        assert f"\n## {language.words}\n" in page, name
        assert f"nsc emit {name} " in page, name


@pytest.mark.parametrize("language", [name for name in LANGUAGES if not LANGUAGES[name].has_types])
def test_a_text_for_all_types_takes_no_types_and_no_window(language):
    with pytest.raises(LoweringError, match=r"is for all types: leave out dtypes=\('int8',\)"):
        nsc.emit(language, "best", 4, dtypes="int8")
    with pytest.raises(LoweringError, match="filters of images are written in C alone"):
        nsc.emit(language, "3x3", select=median())

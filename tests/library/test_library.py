"""Catches a header that needs another one first, or a package that is built with another library."""

import importlib.util
import json
import re
import subprocess

import pytest
from click.testing import CliRunner

import nsc
from nsc import library
from nsc.cli.main import main
from nsc.compiler.driver import compile_network
from nsc.compiler.package import write
from nsc.compiler.relaxations import SIGMOIDS
from nsc.compiler.request import Request
from nsc.errors import BuildError, PackageError
from nsc.runtime.relaxed import reference

TORCH = importlib.util.find_spec("torch").submodule_search_locations[0]
HEADERS = {
    path.relative_to(library.FOLDER).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(library.FOLDER.glob("nsc/**/*.h"))
}


def compiles(source, *options):
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{library.FOLDER}", *options]
    command = ["g++", *flags, "-xc++", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_each_header_says_what_it_is():
    for name, text in HEADERS.items():
        assert re.match(r"// [A-Z][^\n]*\n(//[^\n]*\n)*#pragma once\n", text), name


@pytest.mark.nightly("each header is compiled by itself")
def test_each_header_stands_alone():
    for name in HEADERS:
        if "/cuda/" not in name:
            torch = ["-isystem", f"{TORCH}/include"] if "/deploy/" in name else []
            compiles(f"#include <{name}>\n", "-fsyntax-only", *torch)


def test_python_knows_every_sigmoid():
    text = HEADERS["nsc/relaxed/relaxations.h"]
    structs = re.split(r"^struct (\w+)", text, flags=re.MULTILINE)[1:]
    has_tail = [name for name, body in zip(structs[::2], structs[1::2], strict=True) if " tail(" in body]
    assert list(SIGMOIDS) == has_tail
    assert set(has_tail) == reference.TAILS.keys()


def test_expanded_has_each_header_once_and_no_include():
    text = library.expanded("#include <nsc/relaxed/kernel.h>\n#include <nsc/vectors.h>\n")
    assert "#include <nsc/" not in text
    assert "#pragma once" not in text
    assert text.count("struct Memory {") == 1
    assert library.expanded(text) == text


def test_a_header_that_is_not_there_is_named():
    with pytest.raises(BuildError, match=r"a kernel includes nsc/later\.h, which the library"):
        library.expanded("#include <nsc/later.h>\n")


@pytest.mark.slow("commands build")
def test_a_single_file_needs_no_library(tmp_path):
    words = ["compile", "bitonic", "--n", "2", "--single-file", "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    text = (tmp_path / "bitonic_2" / "bitonic_2.cpp").read_text(encoding="utf-8")
    assert "#include <nsc/" not in text
    assert "nsc compile bitonic --n 2 --single-file" in text
    assert len(facts["binaries"]) == 1
    assert nsc.load(tmp_path / "bitonic_2").n == 2


def test_a_package_for_another_library_says_so_in_one_line(tmp_path):
    folder = write(compile_network(Request("bitonic", 2)).package, tmp_path)
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(library.digest(), "0" * 64), encoding="utf-8")
    with pytest.raises(
        PackageError, match=r"was written by nsc '[^']+' for another kernel library"
    ) as caught:
        nsc.load(folder)
    assert "\n" not in str(caught.value)

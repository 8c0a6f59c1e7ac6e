"""The kernel library: headers that stand on their own, and say what the rest of nsc says."""

import importlib.util
import json
import re
import subprocess

import pytest
from click.testing import CliRunner

import nsc
from nsc import library
from nsc.audit import relaxed_reference
from nsc.cli import main
from nsc.compiler.relaxations import SIGMOIDS
from nsc.compiler.relaxed.butterflies import Pattern
from nsc.compiler.relaxed.cpp import NARROW
from nsc.compiler.schedule import LONGEST, SLOT_ALIGNMENT, WIDEST
from nsc.compiler.search import MOST_WIRES, Objective
from nsc.contract.interface import ART_EPSILON, Status
from nsc.contract.launch import MOST_CHUNKS
from nsc.contract.routings import LARGE, LOSSES, LOWEST_LOG, ROUTINGS, SURROGATE_LEAST, Payload
from nsc.contract.tables import FEWEST_LONG_WIRES
from nsc.contract.windows import MODES
from nsc.errors import BuildError, PackageError
from nsc.join.searching import MOST_COMPARATORS

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


def test_each_header_stands_alone_and_says_what_it_is():
    for name, text in HEADERS.items():
        assert re.match(r"// [A-Z][^\n]*\n(//[^\n]*\n)*#pragma once\n", text), name
        if "/cuda/" not in name:
            torch = ["-isystem", f"{TORCH}/include"] if "/deploy/" in name else []
            compiles(f"#include <{name}>\n", "-fsyntax-only", *torch)


def test_numbers_are_those_of_python(tmp_path):
    """Constants, statuses, routings, patterns and modes, which both sides name."""
    strengths = ""
    claims = {
        "most_comparators": LONGEST,
        "most_wires": WIDEST,
        "slot_alignment": SLOT_ALIGNMENT,
        "most_narrow_wires": NARROW,
        "most_chunks": MOST_CHUNKS,
        "fewest_long_wires": FEWEST_LONG_WIRES,
        "lowest_log": LOWEST_LOG,
        "any(is_large<double>(all(LARGE * unit<double> * (1 - 1e-9))))": 0,
        "any(is_large<double>(all(LARGE * unit<double> * (1 + 1e-9))))": 1,
        "(slope_of_log<ErrorFree, double>(Vec<double>{})[0]) * LEAST * unit<double>": 1,
        "art_epsilon": ART_EPSILON,
    }
    for strength in (1 / 3, 0.3, 0.999, 2.5 / 4096, 3.5 / 4096):
        struct = f"Strength{len(claims)}"
        strengths += f"struct {struct} {{ static constexpr double value = {strength.hex()}; }};\n"
        claims[f"Power<{struct}>::high * 4096"] = round(strength * 4096)
    claims |= {status.name.lower(): status.value for status in Status}
    claims |= {f"Mode::{name}": mode.value for name, mode in MODES.items()}
    claims |= {"search::most_wires": MOST_WIRES, "search::most_comparators": MOST_COMPARATORS}
    claims |= {f"int(search::Objective::{each.name.lower()})": each.value for each in Objective}
    claims |= {f"count_of({each.name.lower()})": len(each.value) for each in Pattern}
    claims |= {f"{loss.name}::of_truth": not loss.by_rank for loss in LOSSES.values()}
    for name, routing in ROUTINGS.items():
        claims |= {
            f"{name}_routing" if name in LOSSES else name: routing.code,
            f"has_shares(Routing({routing.code}))": routing.payload is Payload.SHARES,
            f"is_loss(Routing({routing.code}))": routing.is_loss,
            f"is_reversed(Routing({routing.code}))": routing.is_reversed,
            f"has_columns(Routing({routing.code}))": routing.payload is Payload.COLUMNS,
            f"has_ranks(Routing({routing.code}))": routing.payload is Payload.RANKS,
            f"routes_identity(Routing({routing.code}))": routing.is_loss or name == "permutation",
        }
    tests = "".join(
        f"    if (!({name} == {+value!r})) return {at};\n"
        for at, (name, value) in enumerate(claims.items(), 1)
    )
    compiles(
        f"#include <nsc/relaxed/kernel.h>\n#include <nsc/windows/modes.h>\n"
        f"#include <nsc/search/walk.h>\nusing namespace nsc;\n"
        f"constexpr double LARGE = {LARGE!r}, LEAST = {SURROGATE_LEAST!r};\n"
        f"{strengths}"
        f"struct ErrorFree {{ static constexpr bool error_free = true; }};\n"
        f"int main() {{\n{tests}    return 0;\n}}\n",
        "-o",
        str(tmp_path / "claims"),
    )
    done = subprocess.run([tmp_path / "claims"])
    assert done.returncode == 0, list(claims)[done.returncode - 1]


def test_python_knows_every_sigmoid():
    text = HEADERS["nsc/relaxed/relaxations.h"]
    structs = re.split(r"^struct (\w+)", text, flags=re.MULTILINE)[1:]
    has_tail = [name for name, body in zip(structs[::2], structs[1::2], strict=True) if " tail(" in body]
    assert list(SIGMOIDS) == has_tail == list(relaxed_reference.SIGMOIDS)


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


@pytest.mark.slow("commands build")
def test_a_package_for_another_library_says_so_in_one_line(tmp_path):
    done = CliRunner().invoke(main, ["compile", "bitonic", "--n", "2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for path in (tmp_path / "bitonic_2").iterdir():
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(library.digest(), "0" * 64), encoding="utf-8")
    with pytest.raises(
        PackageError, match=r"was written by nsc '[^']+' for another kernel library"
    ) as caught:
        nsc.load(tmp_path / "bitonic_2")
    assert "\n" not in str(caught.value)

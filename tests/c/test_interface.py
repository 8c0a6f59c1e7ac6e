"""Catches a C header that declares what the built library does not have, or says of it what is not so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from programs import WARNINGS, run

import nsc
from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.compiler.selection import top_k
from nsc.contract.manifest import Manifest, digest
from nsc.runtime.build.toolchain import FLAGS
from nsc.runtime.relaxed.kernel import Kernel

N, BATCH = 6, 40  # as in interface.c


@pytest.fixture(scope="module")
def package():
    return compile_network(Request("bitonic", N, name="called_from_c")).package


@pytest.mark.slow("C programs are built")
def test_a_c_program_gets_the_operators_results(package, tmp_path):
    (tmp_path / "called_from_c_c.h").write_text(package.files["called_from_c_c.h"], encoding="utf-8")
    program = Path(__file__).with_name("interface.c")
    defines = (f"-DN={N}", '-DHEADER="called_from_c_c.h"', f"-I{tmp_path}")
    kernel = Kernel(package.files)
    flags = [*WARNINGS, *defines]
    run("gcc", "-std=c11", *flags, program, kernel.build().binary, "-o", tmp_path / "main")
    run("g++", "-std=c++11", *flags, "-fsyntax-only", "-x", "c++", program)
    lines = [line.split() for line in run(tmp_path / "main").splitlines()]
    assert lines[:4] == lines[4:]  # with a pool and without
    got = {name: torch.tensor(list(map(float, numbers))) for name, *numbers in lines[:4]}
    op = nsc.Sorter(package.files)
    x = (torch.arange(BATCH * N) * 37 % 23).reshape(BATCH, N) / 8
    target = torch.arange(N).expand(BATCH, N)
    x.requires_grad_()
    values, P = op.sort_with_permutation(x, 3.0)
    loss = op.cross_entropy(x, target, 3.0)
    (BATCH * loss).backward()
    for name, wanted in (
        ("values", values),
        ("P", P),
        ("x_grad", x.grad),
    ):
        torch.testing.assert_close(got[name], wanted.detach().flatten())
    torch.testing.assert_close(got["losses"].mean(), loss.detach())


def test_the_header_is_listed_and_says_what_nsc_builds_with(package):
    text = package.files["called_from_c_c.h"]
    listed = Manifest.from_text(package.files["manifest.json"]).files
    assert listed["called_from_c_c.h"] == digest(text)
    assert set(FLAGS) <= set(re.search(r"c\+\+ (.*?\n.*?\.cpp)", text, re.DOTALL)[1].split())
    exported = run("nm", "--dynamic", "--defined-only", Kernel(package.files).build().binary)
    functions = set(re.findall(r" T (nsc_\w+)$", exported, re.MULTILINE))
    assert len(functions) == 4
    assert functions <= set(re.findall(r"(nsc_\w+)\(", text))


def test_a_selection_names_its_wires_and_no_routing_of_all_ranks():
    request = Request("bitonic", 8, select=top_k(2), dtypes=("float64",), name="two")
    text = compile_network(request).package.files["two_c.h"]
    assert re.search(r"result, \(batch, n\): the results are those on wire \d, \d$", text, re.MULTILINE)
    assert "nsc_forward_f64" in text
    assert "f32" not in text
    assert "nsc_rows" in text
    assert "nsc_cross_entropy" not in text


def test_only_a_package_for_processors_has_a_c_header():
    request = Request("bitonic", 4, targets=("cuda",), name="gpu")
    assert "gpu_c.h" not in compile_network(request).package.files

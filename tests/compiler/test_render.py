"""Catches text that changed unseen, that a compiler warns of, or that has paths and words of a user in it."""

import importlib.util
import math
import platform
import re
import shutil
import subprocess
import sys

import pytest

from nsc import library
from nsc.compiler.driver import compile_network
from nsc.compiler.exact.compiling import compile_exact
from nsc.compiler.families import family_network
from nsc.compiler.formats import named, parse_network
from nsc.compiler.network import Network
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.request import Request
from nsc.compiler.selection import top_k
from nsc.compiler.windows.compiling import compile_filter
from nsc.contract.windows import Window
from nsc.errors import LoweringError, NetworkError, PackageError
from nsc.runtime.relaxed.kernel import Kernel

INCLUDE = f"-I{library.FOLDER}"


def source(network, n=None, **options):
    package = compile_network(Request(network, n, **options)).package
    return package.files[f"{package.name}.cpp"]


FOUR_LOGISTIC = {"network": "bitonic", "n": 4}
THREE_EXACT = {
    "network": "odd_even",
    "n": 3,
    "relaxation": Relaxation("optimal", 0.3, error_free=True),
    "dtypes": ("float32", "float64"),
    "name": "odd_even_3_exact",
}


def test_golden_text_compiles_without_a_warning(generated):
    compiles_without_a_warning(generated("bitonic_4.cpp", source(**FOUR_LOGISTIC)))


@pytest.mark.parametrize("element", ["float32", "uint8"])
def test_golden_text_of_an_exact_kernel(element, generated, tmp_path):
    text = compile_exact(4).texts["cpu"]
    generated("best_4_exact.cpp", text)
    compiles_without_a_warning(written(f"#define NSC_ELEMENT {element}\n{text}", tmp_path))


def test_golden_text_of_a_filter(generated, tmp_path):
    text = compile_filter(Window.of(3), version="0").package.files["median_3x3.cpp"]
    generated("median_3x3.cpp", text)
    compiles_without_a_warning(written(f"#define NSC_ELEMENT uint8\n{text}", tmp_path))


def test_golden_module_of_a_filter(golden):
    golden("median_3x3.py.txt", compile_filter(Window.of(3), version="0").package.files["__init__.py"])


def test_an_exact_kernel_of_many_comparators_has_code_for_those_that_repeat():
    few, many = compile_exact(32).texts["cpu"], compile_exact(300).texts["cpu"]
    assert "segment_1<Form>(r" in few
    assert "run_pairs" not in few
    assert "segment_1<Form>(r" in many
    assert "run_pairs" in many
    assert compile_exact(32).texts["cpu"] == few


def written(text, folder):
    path = folder / "kernel.cpp"
    path.write_text(text, encoding="utf-8")
    return path


def compiles_without_a_warning(path, *flags, compiler=("g++", "-fsyntax-only")):
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", INCLUDE, *flags]
    result = subprocess.run([*compiler, *flags, str(path)], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr


def neon_compiler():
    """Return a compiler for 64-bit ARM, or None."""
    if shutil.which("aarch64-linux-gnu-g++"):
        return ["aarch64-linux-gnu-g++"]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "c++", "-target", "aarch64-linux-gnu", "-nostdlib++"]
    return None


@pytest.mark.slow("kernels are built for other registers")
@pytest.mark.parametrize(
    ("registers", "dtype"),
    [
        ("neon", "float32"),
        *(
            pytest.param(*each, marks=pytest.mark.nightly("test_narrower_registers runs them each day"))
            for each in (("x86-64", "float64"), ("haswell", "float32"), ("skylake-avx512", "float64"))
        ),
    ],
)
def test_the_text_compiles_for_registers_of_every_width(registers, dtype, tmp_path):
    if registers == "neon":
        command = neon_compiler()
        if command is None:
            pytest.skip("neither aarch64-linux-gnu-g++ nor the ziglang package is installed")
    elif platform.machine() != "x86_64":
        pytest.skip("g++ here does not compile for x86")
    else:
        command = ["g++", f"-march={registers}"]
    options = {"relaxation": Relaxation("gaussian", 0.4, error_free=True), "dtypes": (dtype,)}
    path = written(source("bitonic", 17, **options), tmp_path)
    compiles_without_a_warning(path, "-fPIC", "-c", "-o", str(tmp_path / "kernel.o"), compiler=command)


@pytest.mark.slow("kernels are compiled")
def test_a_network_of_one_wire_has_valid_text(tmp_path):
    text = source(Network.from_layers(1, []), relaxation=Relaxation("hard", 0.0))
    compiles_without_a_warning(written(text, tmp_path))


def test_the_same_request_gives_the_same_bytes():
    for options in (FOUR_LOGISTIC, THREE_EXACT):
        first, second = (compile_network(Request(**options)).package for _ in range(2))
        assert first == second
        assert list(first.files) == list(second.files)


def test_each_fact_of_a_request_changes_the_text():
    texts = {
        source(network, 4, relaxation=relaxation, dtypes=dtypes)
        for network in ("bitonic", "odd_even")
        for relaxation in (
            Relaxation(),
            Relaxation("cauchy"),
            Relaxation(art_lambda=0),
            Relaxation(art_lambda=0.5),
            Relaxation(error_free=True),
        )
        for dtypes in (("float32",), ("float64",), ("float32", "float64"))
    }
    assert len(texts) == 30


@pytest.mark.slow("networks are large")
def test_1024_wires_make_less_than_a_megabyte_of_text():
    files = compile_network(Request("bitonic", 1024)).package.files
    assert sum(len(text.encode()) for text in files.values()) < 1_000_000


def test_a_large_family_is_named_in_its_package(monkeypatch):
    monkeypatch.setattr("nsc.compiler.relaxed.rendering.LONGEST_LISTED", 79)
    files = compile_network(Request("bitonic", 16)).package.files  # 80 comparators
    assert len(files["network.json"]) < 200
    assert parse_network(files["network.json"]) == family_network("bitonic", 16)
    with pytest.raises(PackageError, match="80 comparators does not run as plain torch"):
        Kernel(files).layers  # noqa: B018
    for request in (
        Request("odd_even_merge", 16),  # 63 comparators
        Request(family_network("bitonic", 16)),
        Request("bitonic", 16, remove_redundant=True),
        Request("bitonic", 32, select=top_k(2)),
    ):
        assert '"layers"' in compile_network(request).package.files["network.json"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"bitonic"', '"bubble"', "no family is called 'bubble'"),
        ('"bitonic"', "7", '"family" must be the name of a family, found 7'),
        ('"bitonic"', '"odd_even"', "this nsc's network has"),
        ('"n": 4', '"n": 5', "this nsc's network has"),
        ('"family"', '"layers": [], "family"', 'both "layers" and a "family"'),
    ],
)
def test_a_name_that_does_not_fit_is_refused(old, new, message):
    text = named("bitonic", family_network("bitonic", 4))
    assert old in text
    with pytest.raises(NetworkError, match=re.escape(message)):
        parse_network(text.replace(old, new), format="nsc")


def test_no_path_date_or_user_text_in_generated_files(tmp_path):
    path = tmp_path / '*_ evil \'quote\n""" import os.json'
    path.write_text(
        '{"format":"nsc-network/1","n":2,"note":"EVIL */ \\"\\"\\"","layers":[[[0,1]]]}', encoding="utf-8"
    )
    package = compile_network(Request(path)).package
    other = tmp_path / "elsewhere" / path.name
    other.parent.mkdir()
    shutil.copy(path, other)
    assert compile_network(Request(other)).package == package
    text = "".join(package.files.values())
    for word in (str(tmp_path), tmp_path.name, "EVIL", "import os", "'quote", "evil '"):
        assert word not in text
    assert package.name == "evil_quote_import_os_2"


def test_generated_files_begin_with_their_names():
    files = compile_network(Request(**THREE_EXACT)).package.files
    assert files["odd_even_3_exact.cpp"].startswith("// odd_even_3_exact: ")
    assert files["__init__.py"].startswith('"""odd_even_3_exact: ')
    compile(files["__init__.py"], "__init__.py", "exec")
    assert all(text.endswith("\n") and not text.endswith("\n\n") for text in files.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sigmoid",), "'sigmoid'; known: logistic"),
        (("logistic", 1.0), r"\[0, 1\), got 1\.0"),
        (("logistic", -0.1), r"\[0, 1\)"),
        (("logistic", math.nan), "nan"),
        (("logistic", "0.25"), "'0.25'"),
        (("logistic", True), "True"),
    ],
)
def test_bad_relaxations_are_refused(arguments, message):
    with pytest.raises(LoweringError, match=message):
        Relaxation(*arguments)


def test_an_unknown_relaxation_lists_the_known_ones():
    with pytest.raises(LoweringError) as caught:
        Relaxation("soft")
    assert all(name in str(caught.value) for name in SIGMOIDS)


@pytest.mark.parametrize("art_lambda", [0.1, 1 / 3, 0.75, 0.999])
def test_the_strength_round_trips_through_its_literal(art_lambda):
    text = source("bitonic", 4, relaxation=Relaxation(art_lambda=art_lambda))
    (literal,) = re.findall(r"struct Lambda \{ static constexpr double value = (\S+); \};", text)
    assert float.fromhex(literal) == art_lambda


def test_a_relaxation_describes_itself():
    assert Relaxation().describe() == "logistic, ART λ = 0.25"
    assert Relaxation("cauchy", 0, error_free=True).describe() == "cauchy, error-free"

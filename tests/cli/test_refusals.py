"""Bad input that is taken, refused in several messages or in Python's words, or that leaves files."""

import shlex
from pathlib import Path

import pytest
from commands import NOT_A_SORTER, SORTER, call, check_refused, paths, process

from nsc.compiler.families import FAMILIES
from nsc.compiler.relaxations import SIGMOIDS

BAD_FILES = {
    "empty.json": b"",
    "binary.json": bytes(range(256)),
    "cut.json": b'{"format": "nsc-network/1", "n": 4, "lay',
    "range.json": b'{"format": "nsc-network/1", "n": 2, "layers": [[[0, 2]]]}',
    "twice.json": b'{"format": "nsc-network/1", "n": 3, "layers": [[[0, 1], [1, 2]]]}',
    "huge.json": b'{"format": "nsc-network/1", "n": 1000000000000, "layers": []}',
    "deep.json": b'{"format": ' + b"[" * 100_000,
    "code.txt": b"[(0,__import__('os').system('touch evil'))]",
    "five.txt": b"[(0,4)]",
}
BAD_LINES = [
    "compile",
    "compile bitonic --n -4",
    "compile bitonic --n 99999999999999999999999",
    "compile odd_even --n 65536",
    "compile bitonic --n 4 --art-lambda nan",
    "compile bitonic --n 4 --deploy --target cuda",
    "compile bitonic --n 4 --deploy --single-file",
    "filter 3x3 --median --deploy",
    "engine --dtype int8",
    "compile bitonic --n 4 --name ../x",
    "compile bitonic --n 4 --name __init__",
    f"compile bitonic --n 4 --name {'x' * 250}",
    "compile bitonic --n 4 --top-k 0",
    "compile bitonic --n 4 --ranks ١",
    "compile bitonic --n 4 --ranks 1,",
    "compile bitonic --n 4 --median",
    "compile bitonic --n 5 --median --wires 1,2",
    "compile . --n 4",
    "verify missing.json",
    f"verify {'x' * 5000}",
    "compile bitonic --n 4 --target cpu,,cuda",
    "list --top-k 9 --n 8",
    "list --n 0",
    "show bitonic bitonic --n 4",
    "optimize bitonic --n 4 --json",
    "sort",
]


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:60])
def test_bad_lines_are_refused_with_one_message(line):
    check_refused(shlex.split(line))


IN_OPTIONS = {
    "compile odd_even": "family odd_even needs --n,",
    "compile one.cn": "--index-base 1, or from 0, with --index-base 0 and --n",
    "compile one.cn --n 4 --format list --ranks 1 --top-k 1": "one of --top-k, --median, --ranks",
    "compile bitonic --n 4 --wires 1": "--wires says where selected values are",
    "compile bitonic --n 4 --dtype int8": "--dtype must be some of float32, float64",
    "compile bitonic --n 4 --target tpu": "--target must be some of cpu, cuda",
    "compile bitonic --n 4 --arch sm_90": "--arch is for the CUDA kernels",
    "compile best --n 4 --ranks 1 --wires 2": "leave --wires out",
    "compile odd_even --n 3 --art-lambda 2": "--art-lambda must be in [0, 1)",
    "compile bitonic --n 4 --out mine": "choose another --name or --out",
    "verify four.json --index-base 1": "name another --format",
    "convert two.txt out.json": "choose one by --n",
}


@pytest.mark.parametrize("line", IN_OPTIONS)
def test_errors_of_the_command_name_options(line):
    """They name --index-base, where errors of Python name index_base."""
    Path("one.cn").write_text("1:2", encoding="utf-8")
    Path("two.txt").write_text("f(){S(0,1);S(0,1);} g(){S(0,1);S(0,1);}", encoding="utf-8")
    Path("four.json").write_text(SORTER, encoding="utf-8")
    Path("mine/bitonic_4").mkdir(parents=True)
    assert IN_OPTIONS[line] in check_refused(line.split())


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused_with_one_message(name):
    Path(name).write_bytes(BAD_FILES[name])
    check_refused(["verify", name, *(["--n", "4"] if name == "five.txt" else [])])


def test_unknown_words_list_the_known_ones():
    for line, known in (
        ("compile bionic --n 4", FAMILIES),
        ("compile bitonic --n 4 --relaxation soft", SIGMOIDS),
        ("compile bitonic --n 4 --dtype int8", ["float32", "float64"]),
    ):
        _, err = call(*line.split(), code=2)
        assert all(word in err for word in known)
    Path("text.json").write_text("hello", encoding="utf-8")
    _, err = call("verify", "text.json", code=2)
    assert "or state --format, one of nsc, " in err
    assert err.rstrip().endswith("which says where it differs")


def test_a_network_that_does_not_sort_is_not_compiled():
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    before = paths()
    out, err = call("compile", "not.txt", "--unproved", code=1)
    assert out == ""
    assert err.startswith("nsc: the network does not sort: 0-1 input ")
    assert err.count("\n") == 1
    assert paths() == before


def test_a_bad_line_ends_the_process_without_a_traceback():
    result = process("compile", "bitonic", "--n", 0)
    assert (result.returncode, result.stdout, paths()) == (2, "", [])
    assert result.stderr == "nsc: bitonic needs n >= 1, got 0\n"


def test_an_output_folder_that_cannot_be_written_is_an_error():
    Path("file").write_text("mine", encoding="utf-8")
    _, err = call("compile", "bitonic", "--n", 4, "--out", "file/below", code=2)
    assert err.startswith("nsc: cannot write the package to ")
    assert paths() == ["file"]
    assert Path("file").read_text(encoding="utf-8") == "mine"


def test_a_foreign_folder_is_kept():
    folder = Path("generated/bitonic_4")
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("years of work", encoding="utf-8")
    before = paths()
    _, err = call("compile", "bitonic", "--n", 4, code=2)
    assert "no nsc package" in err
    assert paths() == before


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        ("/nonexistent", "NSC_CXX is '/nonexistent'"),
        ("false", "the compiler failed with exit code 1"),
    ],
)
def test_a_missing_or_broken_compiler_is_an_error(compiler, message, monkeypatch):
    monkeypatch.setenv("NSC_CXX", compiler)
    out, err = call("compile", "bitonic", "--n", 4, code=2)
    assert (out, paths()) == ("", [])
    assert message in err

"""Output with control characters or wrong plurals, that a locale breaks, or that hostile files steer."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import FILES, SORTER, call
from messages import check_words

pytestmark = pytest.mark.slow("commands are started and ended")


def test_a_family_list_without_docstrings_and_without_unicode():
    result = subprocess.run(
        [sys.executable, "-OO", "-m", "nsc", "list"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_hostile_network_file_puts_nothing_into_generated_text():
    evil = "*/ system(); // '''\"\"\"; import evil #"
    name = 'x */ evil\n"""quote.json'.replace("/", "∕")
    content = {**json.loads(SORTER), "note": evil, "name": "evil", "detail": evil, evil: evil}
    Path("deep").mkdir()
    for path in (Path(name), Path("deep") / name):
        path.write_text(json.dumps(content), encoding="utf-8")
    facts = json.loads(call("compile", name, "--json")[0])
    call("compile", Path("deep", name).resolve(), "--out", "other")
    folder = Path(facts["folder"])
    assert folder == Path("generated/x_evil_quote_4")
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*FILES, "x_evil_quote_4.cpp", "x_evil_quote_4_c.h", "engine_f32.cpp", "tables.json"]
    )
    for path in folder.iterdir():
        assert path.read_bytes() == (Path("other") / folder.name / path.name).read_bytes()
        text = path.read_text(encoding="utf-8")
        for word in (evil, "system()", "import evil", "*∕", '"""quote', str(Path.cwd())):
            assert word not in text


SMALLEST = (
    "compile odd_even --n 1",
    "compile bitonic --n 1 --top-k 1 --name one --target cuda",
    "emit c bitonic --n 1",
    "verify odd_even --n 1",
    "list --n 1",
    "show bitonic --n 1",
    "explain bitonic --n 1",
    "optimize bitonic --n 2 --property top-1 -o top.json",
    "convert swap.txt swap.json",
    "convert swap.txt swap.svg",
    "verify generated/odd_even_1",
)
REFUSED_AT_ONE = (
    "verify bitonic --n 1 --property top-2",
    "verify bitonic --n 2 --property top-2 --wires 1",
    "compile bitonic --n 1 --top-k 2",
    "compile swap.txt --n 1",
    "compile bitonic --n 1 --ranks 1",
    "show one.txt",
)


def test_counts_fit_their_nouns():
    """Output, files and errors are checked for one wire, one comparator and one rank."""
    Path("swap.txt").write_text("[(0,1)]\n", encoding="utf-8")
    Path("one.txt").write_text("[(1,1)]\n", encoding="utf-8")
    for line in SMALLEST:
        out, err = call(*line.split())
        check_words(out + err)
    for path in Path().rglob("*.*"):
        check_words("\n".join(re.findall(r".*\bwires?,.*", path.read_text(encoding="utf-8"))))
    for line in REFUSED_AT_ONE:
        out, err = call(*line.split(), code=2)
        check_words(out + err)

"""Outputs to standard output, pipes and links that lose or mix text, or replace what they name."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commands import SORTER, call, check_refused, paths

# Every command that writes one file, and how it begins.
WRITERS = {
    "convert four.json --to list -o OUT": "[(",
    "convert four.json OUT --to cn": "0:2,1:3\n",
    "optimize four.json -o OUT": '{"format"',
    "draw four.json --to svg -o OUT": "<svg",
    "verify four.json --certificate OUT": "nsc-certificate 1\n",
    "compile bitonic --n 4 --certificate OUT": "nsc-certificate 1\n",
    "search --n 4 -o OUT --to cn": "0:3,1:2\n",
    "emit c four.json -o OUT": "/* four_4.h: ",
}


@pytest.fixture(autouse=True)
def four():
    Path("four.json").write_text(SORTER, encoding="utf-8")


@pytest.mark.parametrize("line", WRITERS)
def test_a_dash_is_standard_output(line):
    out, _ = call(*line.replace("OUT", "-").split())
    assert out.startswith(WRITERS[line])
    assert "method: " not in out
    assert "use it with" not in out
    assert set(paths()) & {"-", "generated/-", "generated/four_4.h"} == set()


@pytest.mark.parametrize("line", ["convert four.json --to list -o OUT", "verify four.json --certificate OUT"])
def test_a_pipe_gets_the_whole_text(line):
    os.mkfifo("pipe.json")
    with ThreadPoolExecutor() as readers:
        text = readers.submit(Path("pipe.json").read_text)
        call(*line.replace("OUT", "pipe.json").split())
        assert text.result(60).startswith(WRITERS[line])


@pytest.mark.slow("commands are started")
def test_a_file_that_is_standard_output_keeps_what_it_has():
    Path("log").write_text("keep\n", encoding="utf-8")
    command = [sys.executable, "-m", "nsc", "verify", "four.json", "--certificate", "/dev/stdout"]
    with open("log", "a") as log:
        subprocess.run(command, stdout=log, check=True, timeout=120)
    text = Path("log").read_text(encoding="utf-8")
    assert text.startswith("keep\nnsc-certificate 1\n")
    assert text.endswith("end\n")


def test_a_link_is_followed_and_a_device_stays_one():
    Path("link").symlink_to("file")
    call("verify", "four.json", "--certificate", "link")
    assert Path("link").is_symlink()
    assert Path("file").read_text(encoding="ascii").startswith("nsc-certificate 1\n")
    call("search", "--n", 4, "-o", "/dev/null", "--to", "cn")
    assert Path("/dev/null").is_char_device()
    assert not Path("/dev/null.search.json").exists()


@pytest.mark.parametrize(
    "words",
    [
        "verify four.json --json --certificate -",
        "compile four.json --json --certificate -",
        "emit c four.json --json -o -",
        "compile four.json -o -",
    ],
)
def test_one_text_goes_to_standard_output(words):
    check_refused(words.split())


@pytest.mark.slow("commands are started")
def test_a_closed_pipe_is_no_refutation():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "nsc", "verify", "four.json"]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")

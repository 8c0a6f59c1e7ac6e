"""Ways to call the command, and networks to call it with."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from nsc.cli.main import main

FILES = ["__init__.py", "manifest.json", "network.json", "proof.json"]
SORTER = '{"format":"nsc-network/1","n":4,"layers":[[[0,2],[1,3]],[[0,1],[2,3]],[[1,2]]]}'
NOT_A_SORTER = "[(0,1)]\n[(1,2)]\n"


def process(*words, **environment):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "nsc", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def start(*words, **environment):
    """Start the command in a process and a session of its own that receives SIGINT.

    Background jobs of a shell ignore SIGINT, and their children would too.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "nsc", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def call(*words, code=0):
    """Run the command in this process and return its standard output and error."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, (result.stdout, result.stderr)
    return result.stdout, result.stderr


def paths():
    return sorted(str(path) for path in Path().rglob("*"))


def check_refused(words):
    """Check that a command says what is wrong in one message and writes nothing; return the message."""
    before = paths()
    out, err = call(*words, code=2)
    assert out == ""
    assert err.startswith(("nsc: ", "Usage: "))
    assert err.count("nsc: ") + err.count("Error: ") == 1
    assert err.endswith("\n")
    assert all(line.isprintable() for line in err.split("\n"))
    if err.startswith("nsc: "):
        assert err.count("\n") == 1
    assert paths() == before
    return err

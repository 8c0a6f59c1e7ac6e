"""Shell completion that a shell does not understand, or that offers too little or other words."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from nsc.cli.drawing import FORMATS as DRAWN
from nsc.cli.main import main
from nsc.cli.shared import some_of
from nsc.cli.sources import complete_networks
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import readable, writable


class Terminal:
    """A bash at a terminal."""

    def __init__(self, path):
        self.master, slave = pty.openpty()
        self.bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "> "},
        )
        os.close(slave)

    def type(self, keys, expected):
        """Type some keys, and return what the terminal shows once the expected text is there."""
        os.write(self.master, keys.encode())
        shown, deadline = "", time.monotonic() + 60
        while expected not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([self.master], [], [], 0.1)[0]:
                shown += os.read(self.master, 1 << 16).decode()
        return shown

    def close(self):
        self.bash.kill()
        self.bash.wait()
        os.close(self.master)


@pytest.fixture
def terminal(tmp_path):
    command = tmp_path / "nsc"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m nsc "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    bash = Terminal(tmp_path)
    try:
        page = (Path(__file__).parents[2] / "docs/reference/commands.md").read_text(encoding="utf-8")
        line = re.search(r"^\| bash .*`(eval .*)` \|$", page, re.MULTILINE)[1]
        bash.type(f"{line}; echo ready\n", "\r\nready\r\n")
        yield bash
    finally:
        bash.close()


@pytest.mark.slow("commands are started and ended")
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_commands_families_files_and_options(terminal):
    Path("folder").mkdir()
    Path("folder/theirs.cn").touch()
    for typed, completed in (
        ("nsc verify folder/th", "folder/theirs.cn "),
        ("nsc compile bitonic --dtype float32,float6", "float32,float64 "),
    ):
        terminal.type(f"{typed}\t", completed)
        terminal.type("\x15echo done\n", "\r\ndone\r\n")


def completions(*words):
    """Return what a shell is told to offer for the last word of a line."""
    result = subprocess.run(
        [sys.executable, "-m", "nsc"],
        capture_output=True,
        text=True,
        timeout=60,
        env={
            **os.environ,
            "_NSC_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("nsc", *words)),
            "COMP_CWORD": str(len(words)),
        },
    )
    assert (result.returncode, result.stderr) == (0, "")
    return [line.removeprefix("plain,") for line in result.stdout.splitlines()]


def test_the_module_completes_under_the_commands_name():
    assert completions("verify", "odd_even_") == ["odd_even_merge"]
    assert completions("cache", "") == ["clear", "list", "size", "where"]


@pytest.mark.parametrize(
    "name", sorted(set(main.commands) - {"cache", "doctor", "engine", "filter", "list", "records", "search"})
)
def test_every_command_completes_networks_and_formats(name):
    Path("best.cn").touch()
    Path("a b.cn").touch()
    Path(".hidden").touch()
    params = {param.name: param for param in main.commands[name].params}
    context = click.Context(main.commands[name], info_name=name)

    def offered(param, beginning):
        return [(item.type, item.value) for item in params[param].shell_complete(context, beginning)]

    assert offered("net", "") == [("plain", word) for word in (*FAMILIES, "best.cn")]
    assert offered("net", "be") == [("plain", "best"), ("plain", "best.cn")]
    assert offered("net", "a ") == [("file", "a ")]
    assert offered("net", "folder/x") == [("file", "folder/x")]
    assert offered("net", "sort_16") == [("plain", "sort_16_60_10"), ("plain", "sort_16_61_9")]
    assert [value for _, value in offered("format", "")] == readable()
    if "to" in params:
        assert [value for _, value in offered("to", "")] == (DRAWN if name == "draw" else writable())


def test_lists_complete_their_last_word():
    def offered(beginning):
        return [item.value for item in some_of(["cpu", "cuda", "c"])(None, None, beginning)]

    assert offered("") == ["cpu", "cuda", "c"]
    assert offered("cpu,c") == ["cpu,cuda", "cpu,c"]
    assert offered("x") == []


def test_files_of_a_folder_that_is_gone_are_none(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert [item.value for item in complete_networks(None, None, "bes")] == ["best"]

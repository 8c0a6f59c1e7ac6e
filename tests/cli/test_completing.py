"""Shell completion that offers too little or other words."""

import os
import subprocess
import sys

import click
import pytest

from nsc.cli.drawing import FORMATS as DRAWN
from nsc.cli.main import main
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import readable, writable


def test_the_module_completes_under_the_commands_name():
    words = {"COMP_WORDS": "nsc verify odd_even_", "COMP_CWORD": "2", "_NSC_COMPLETE": "bash_complete"}
    result = subprocess.run(
        [sys.executable, "-m", "nsc"], capture_output=True, text=True, timeout=60, env={**os.environ, **words}
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "plain,odd_even_merge\n", "")


@pytest.mark.parametrize("name", ["compile", "convert", "draw"])
def test_commands_complete_networks_and_formats(name):
    params = {param.name: param for param in main.commands[name].params}
    context = click.Context(main.commands[name], info_name=name)

    def offered(param, beginning):
        return [(item.type, item.value) for item in params[param].shell_complete(context, beginning)]

    assert offered("net", "") == [("plain", word) for word in FAMILIES]
    assert offered("net", "folder/x") == [("file", "folder/x")]
    assert offered("net", "sort_16") == [("plain", "sort_16_60_10"), ("plain", "sort_16_61_9")]
    assert [value for _, value in offered("format", "")] == [*readable()]
    if "to" in params:
        assert [value for _, value in offered("to", "")] == (DRAWN if name == "draw" else [*writable()])
    if "dtypes" in params:
        assert offered("dtypes", "float6") == [("plain", "float64")]

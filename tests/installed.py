"""Try the nsc that is installed: python tests/installed.py [COMPILER].

It needs what nsc requires and no more, and goes through what needs no PyTorch; where PyTorch is there,
nsc doctor tries gradients too. COMPILER is a word that doctor's line of the compiler must have.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

import nsc.numpy
from nsc.cli.main import main as command

TREE = Path(__file__).parents[1]
COMMANDS = (
    ("list --n 4", "best"),
    ("verify bitonic --n 16", "sorts"),
    ("optimize bitonic smaller.txt --n 8", "24"),
    ("verify smaller.txt", "sorts"),
    ("convert smaller.txt drawn.ascii", ""),
    ("verify drawn.ascii", "sorts"),
    ("compile bitonic --n 8", "bitonic_8"),
    ("verify generated/bitonic_8", "come out right"),
    ("filter 3x3 --median", "median_3x3"),
    ("emit c best --n 4", "best_4.h"),
    ("draw bitonic --n 8 -o eight.html", "eight.html"),
)


def run(line: str) -> str:
    """Run a command of nsc in the working directory and return what it prints."""
    printed = io.BytesIO()
    stream = io.TextIOWrapper(printed, encoding="utf-8", write_through=True)
    try:
        with contextlib.redirect_stdout(stream):
            command(line.split())
    except SystemExit as end:
        if end.code:
            sys.exit(f"nsc {line}:\n{printed.getvalue().decode()}")
    return printed.getvalue().decode()


def arrays() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((1000, 15))
    assert np.array_equal(nsc.numpy.sort(x), np.sort(x))
    assert np.array_equal(nsc.numpy.argsort(x), np.argsort(x))
    assert np.array_equal(nsc.numpy.median(x, axis=1), np.median(x, axis=1))
    images = random.integers(0, 256, (20, 30), dtype=np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3)).reshape(18, 28, 9)
    filtered = nsc.numpy.median_filter(images, 3)[1:-1, 1:-1]
    assert np.array_equal(filtered, np.median(windows, axis=2).astype(np.uint8))


def main(compiler: str = "") -> None:
    assert not Path(nsc.__file__).is_relative_to(TREE), f"{nsc.__file__} is not installed"
    os.environ.setdefault("NSC_CACHE_DIR", str(Path("cache").absolute()))
    for finding in json.loads(run("doctor --json")):
        print(finding["name"], finding["text"].splitlines()[0], sep=": ", flush=True)
        assert finding["name"] != "compiler" or compiler in finding["text"], f"not {compiler}"
    for line, shown in COMMANDS:
        assert shown in run(line), f"nsc {line} does not print {shown}"
    arrays()
    print("numpy", version("numpy"), "networkx", version("networkx"), "click", version("click"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main(*sys.argv[1:])

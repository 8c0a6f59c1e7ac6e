"""The project installs as a package with real folders for its rooms, and as a command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREE = ("nsc", "compiler", "runtime", "templates", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the project from a copy of its tree, and return the folder it is installed in."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    for name in TREE:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(target), str(source)], check=True, capture_output=True)
    return target


def run(installed, *command, cwd):
    result = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin", "NSC_CACHE_DIR": str(cwd / "cache")},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_plain_install_compiles_and_trains(installed, tmp_path):
    assert (installed / "nsc" / "templates" / "cpp/kernel.cpp.j2").is_file()
    assert (installed / "nsc" / "py.typed").is_file()
    assert not (installed / "nsc" / "compiler").is_symlink()
    assert "bitonic_4" in run(installed, "-m", "nsc", "compile", "bitonic", "--n", "4", cwd=tmp_path)
    program = (
        "import nsc, torch; from generated import bitonic_4 as net; print(nsc.__file__)\n"
        "x = torch.tensor([3.0, 1.0, 2.0, 0.0], requires_grad=True)\n"
        "net.sort(x)[0].backward(); print(x.grad.sum().item())"
    )
    file, total = run(installed, "-c", program, cwd=tmp_path).split()
    assert Path(file).is_relative_to(installed)
    assert float(total) == pytest.approx(1, abs=1e-5)


def test_the_command_is_installed(installed):
    script = installed / "bin" / "nsc"
    assert script.is_file()
    assert "nsc.__main__" in script.read_text()

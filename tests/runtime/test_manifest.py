"""A manifest agrees with the network and the built kernel, or the package is refused."""

import ctypes
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import nsc
from nsc.compiler.driver import compile_network
from nsc.compiler.package import write
from nsc.compiler.request import Request
from nsc.compiler.selection import top_k
from nsc.runtime.kernel import Kernel
from nsc.runtime.library import Library

EDITS = Path(__file__).parent / "edit_manifests.py"


@pytest.mark.parametrize(
    "request_", [Request("bitonic", 4, targets=("cpu", "cuda")), Request("bitonic", 6, select=top_k(2))]
)
def test_no_edit_of_a_manifest_makes_a_call_go_wrong(request_, tmp_path):
    """Edits change a fact, its type, or leave it out; some change a whole package without contradiction."""
    folder = write(compile_network(request_).package, tmp_path)
    done = subprocess.run([sys.executable, EDITS, folder], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) > 200
    assert [line for line in lines if not line.startswith(("refused", "right"))] == []
    # Facts that no call depends on may be edited.
    right = {line.split(" -- ")[1].split(":")[0] for line in lines if line.startswith("right")}
    assert right <= {"command", "network", "outputs", "art_lambda", "sources", "cuda", "files"}


def test_an_edited_number_of_wires_is_named():
    files = dict(nsc.compile("bitonic", 4).kernel.files)
    files["manifest.json"] = files["manifest.json"].replace('"n": 4', '"n": 2')
    with pytest.raises(
        nsc.PackageError, match=r"'n' is 2, and bitonic_4\.cpp has 4: compile the package again"
    ):
        Kernel(files)


def test_a_library_of_another_package_is_refused():
    other, kernel = nsc.compile("bitonic", 4).kernel, nsc.compile("bitonic", 6).kernel
    with pytest.raises(nsc.PackageError, match=r"'bitonic_6' .*'n' is 6, and .*bitonic_4.* has 4"):
        Library(other.build().binary, kernel.manifest.stated("cpu"), kernel.reals)


def test_a_library_may_be_prepared_again_and_by_many_threads():
    operator = nsc.compile("bitonic", 6)
    x = torch.randn(3, 6)
    expected = operator.sort_with_permutation(x), operator.hard_sort(x)
    library = ctypes.CDLL(str(operator.kernel.build().binary))
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(library.nsc_prepare())) for _ in range(4)]
    for thread in threads:
        thread.start()
    actual = operator.sort_with_permutation(x), operator.hard_sort(x)
    for thread in threads:
        thread.join()
    assert statuses == [0] * 4
    for first, second in zip(expected, actual, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert torch.equal(operator.sort_with_permutation(x)[1], expected[0][1])

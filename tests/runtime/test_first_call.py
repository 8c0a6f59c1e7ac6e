"""A first call while its kernel is built: the reference serves, or a terminal says what it waits for."""

import sys
import threading
import time

import pytest
import torch
from terminal import at_a_terminal

import nsc
from nsc.errors import BuildError
from nsc.runtime.relaxed.library import Library

pytestmark = pytest.mark.slow("kernels are built")

# The tests of a process share exact kernels, and no other test sorts so many values exactly.
N, OTHER = 27, 29


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Set an empty cache, builds in the background, and a compiler that waits for the file returned."""
    go = tmp_path / "go"
    cxx = tmp_path / "late-g++"
    cxx.write_text(f"""#!/bin/sh
case "$*" in *.cpp*) until test -e {go}; do sleep 0.02; done;; esac
exec g++ "$@"
""")
    cxx.chmod(0o700)
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NSC_CXX", str(cxx))
    monkeypatch.setenv("NSC_CXXFLAGS", "-O0")
    monkeypatch.setenv("NSC_BUILD", "background")
    yield go
    go.touch()
    ended()


def ended():
    """Wait for all builds in the background."""
    for thread in threading.enumerate():
        if thread.name.startswith("build of "):
            thread.join()


def results(op, x):
    """Return values, P, a loss and the gradient of their sum."""
    leaf = x.clone().requires_grad_()
    values, p = op.sort_with_permutation(leaf, 3.0)
    loss = op.cross_entropy(leaf, torch.arange(op.n).expand(x.shape), 3.0)
    (values.square().sum() + p.square().sum() + loss).backward()
    return values, p, loss, leaf.grad


def test_the_reference_serves_until_the_kernel_takes_over(compiler):
    op = nsc.compile("bitonic", N, name="served")
    x = torch.randn(50, N)  # enough for weights to be kept
    before, sorted_before = results(op, x), op.hard_sort(x)
    assert op.kernel.library() is None
    compiler.touch()
    ended()
    assert isinstance(op.kernel.library(), Library)
    for one, other in zip(results(op, x), before, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5 * other.abs().max().item())
    sorted_after = op.hard_sort(x)
    assert all(map(torch.equal, sorted_after, sorted_before))
    names = {path.name.split("-")[0] for path in (compiler.parent / "cache").glob("*.so")}
    assert "served" in names
    assert not any(name.startswith("engine") for name in names)


def test_a_kernel_takes_over_between_forward_and_backward(compiler):
    op = nsc.compile("bitonic", 13, name="between_13", dtypes="float64")
    x = torch.randn(400, 13, dtype=torch.float64, requires_grad=True)
    p = op.sort_with_permutation(x, 3.0)[1]
    compiler.touch()
    ended()
    assert isinstance(op.kernel.library(), Library)
    (grad,) = torch.autograd.grad(p.square().sum(), x)
    (again,) = torch.autograd.grad(op.sort_with_permutation(x, 3.0)[1].square().sum(), x)
    torch.testing.assert_close(grad, again, rtol=1e-12, atol=1e-13)


def sorted_and_built(op, x):
    """Return soft and exact values, when builds have ended."""
    values = op.sort(x), op.hard_sort(x)[0]
    ended()
    return values


def test_builds_that_fail_leave_the_reference(compiler, monkeypatch):
    def failing(*_):
        raise BuildError("no space")

    op = nsc.compile("bitonic", OTHER, name="unserved")
    x = torch.randn(3, OTHER)
    monkeypatch.setattr("nsc.runtime.build.cache.build", failing)
    with pytest.warns(RuntimeWarning) as caught:
        first, exact = sorted_and_built(op, x)
    messages = [str(warning.message) for warning in caught]
    assert messages == ["nsc: unserved stays with plain torch, many times slower: no space"]
    assert torch.equal(op.sort(x), first)
    assert torch.equal(op.hard_sort(x)[0], exact)


def test_by_default_a_first_call_waits_where_no_engine_is_built(compiler, monkeypatch):
    monkeypatch.delenv("NSC_BUILD")
    compiler.touch()
    op = nsc.compile("bitonic", 5, name="waited_for_5")
    op.sort(torch.randn(5))
    assert isinstance(op.kernel.library(), Library)


WAITING = """
import torch, nsc
op = nsc.compile("bitonic", 4, name="shown_4", build=BUILD)
print(op.sort(torch.tensor([3.0, 1.0, 2.0, 0.0]), 1e6).tolist())
while BUILD == "background" and op.kernel.library() is None:
    pass
"""


@pytest.mark.parametrize(
    ("build", "term", "is_shown"),
    [
        ("wait", "xterm-256color", True),
        ("background", "xterm-256color", False),
        pytest.param("wait", "dumb", False, marks=pytest.mark.nightly("more terminals see a build")),
    ],
)
def test_a_terminal_says_what_a_call_waits_for(compiler, build, term, is_shown):
    def wait_and_go():
        deadline = time.monotonic() + 60
        while not list((compiler.parent / "cache").glob(".shown_4*")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(2.5)
        compiler.touch()

    program = f"BUILD = {build!r}\n{WAITING}"
    code, printed, output = at_a_terminal([sys.executable, "-c", program], term, wait_and_go)
    assert (code, printed) == (0, b"[0.0, 1.0, 2.0, 3.0]\n")
    text = f"nsc: building shown_4, kept in {compiler.parent / 'cache'} …"
    shown = f"\r{text}\r{' ' * len(text)}\r"
    assert output.decode() == (shown if is_shown else "")

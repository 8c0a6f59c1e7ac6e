"""Texts kept in the build cache, and who takes the proofs among them."""

from __future__ import annotations

import os
import stat
from dataclasses import replace

import pytest

import nsc
from nsc.cli import main
from nsc.compiler.passes import canonical
from nsc.compiler.verify import keeping, verify
from nsc.errors import VerificationError
from nsc.join.budget import budget_of
from nsc.runtime.build.texts import Texts

UNSORTED = nsc.Network.from_layers(3, [[(0, 1)], [(1, 2)]])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_text_is_kept_whole_and_for_its_user_alone(folder):
    mask = os.umask(0)
    try:
        Texts("1").write("name", "first")
        Texts("1").write("name", "second ✓")
    finally:
        os.umask(mask)
    assert Texts("1").read("name") == "second ✓"
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert Texts("1").read("other") is Texts("2").read("name") is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_may_write_is_not_trusted(folder, mode):
    texts = Texts("1")
    texts.write("name", "text")
    (file,) = folder.iterdir()
    file.chmod(mode)
    with pytest.warns(RuntimeWarning, match=r"others may write to .*name-1\.json; it is not used, but made"):
        assert texts.read("name") is None
    file.chmod(0o600)
    folder.chmod(mode | 0o500)
    assert texts.read("name") is None
    texts.write("later", "text")
    folder.chmod(0o700)
    assert texts.read("later") is None


def test_where_nothing_can_be_written_nothing_is_kept(folder):
    folder.write_text("a file")
    Texts("1").write("name", "text")
    assert Texts("1").read("name") is None


def test_a_text_that_is_no_text(folder):
    texts = Texts("1")
    texts.write("name", "text")
    (file,) = folder.iterdir()
    file.write_bytes(b"\xff\xfe")
    assert texts.read("name") is None


def test_who_asks_for_a_proof_gets_a_new_one(folder, monkeypatch, tmp_path, capsys):
    """A false proof is planted: operators take it, as they would take a planted library."""
    truth = replace(verify(nsc.network("best", 3)), canonical=canonical(UNSORTED).digest)
    with monkeypatch.context() as patch:
        patch.setattr(keeping, "verify", lambda *asked: truth)
        nsc.compile(UNSORTED, name="planted")
    nsc.compile(UNSORTED, name="taken")
    assert not nsc.verify(UNSORTED)
    file = tmp_path / "unsorted.txt"
    file.write_text("0:1\n1:2\n")
    for command in ("verify", "compile", "optimize"):
        with pytest.raises(SystemExit) as ended:
            main([command, str(file), "--n", "3"])
        assert ended.value.code == 1
        assert "sort" in "".join(capsys.readouterr())
    with pytest.raises(VerificationError):
        nsc.c_header(UNSORTED)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_proof_of_another_user_is_found_anew(folder):
    """Its words are right, so nothing but its owner tells."""
    nsc.compile("odd_even", 5, name="kept")
    (file,) = folder.glob("proof-5-*")
    os.chown(file, 12345, -1)
    with pytest.warns(
        RuntimeWarning, match="belongs to user 12345, and this process to user 0; it is not used"
    ):
        nsc.compile("odd_even", 5, name="found")
    assert file.stat().st_uid == 0


def test_operators_and_numpy_keep_their_proofs(folder):
    from nsc.compiler.windows import Window
    from nsc.join import exact
    from nsc.join import windows as filters

    exact.exact_kernel.__wrapped__(5)
    assert len(list(folder.glob("proof-5-*.json"))) == 1
    filters.compiled_filter.__wrapped__(Window.of((1, 3)))
    assert list(folder.glob("proof-3-*.json"))
    assert budget_of().archive is None

"""Catches a file that is read in one of two possible ways, and a file that is not written whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from nsc.compiler.formats import (
    FORMATS,
    format_of_path,
    parse_network,
    read_network,
    readable,
    writable,
    write_network,
)
from nsc.compiler.network import Network
from nsc.errors import NetworkError

FOUR = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]])
BOTH = [name for name in readable() if name in writable()]
FROM_ONE = "1:3,2:4,1:2,3:4,2:3"


# ------------------------------------------------------------------------------------------ both ways


def test_the_table_of_formats():
    assert set(readable()) | set(writable()) == set(FORMATS)
    suffixes = [suffix for format_ in FORMATS.values() for suffix in format_.suffixes]
    assert len(suffixes) == len(set(suffixes))


@pytest.mark.parametrize("name", BOTH)
@settings(max_examples=25)
@given(network=networks(wires=(1, 9)), seed=st.integers(0, 2**32 - 1))
def test_a_written_network_is_read_back(name, network, seed):
    text = write_network(network, name)
    assert text == write_network(network, name)
    assert text.isascii() or name == "ascii"
    parsed = parse_network(text, network.n, format=name) if text else network
    relayered = Network.from_comparators(network.n, network.comparators)
    assert parsed == (network if FORMATS[name].holds_layers else relayered)
    values = np.random.default_rng(seed).integers(0, 9, (20, network.n))
    np.testing.assert_array_equal(parsed.apply(values), network.apply(values))
    if FORMATS[name].holds_wires:
        assert parse_network(text, format=name) == parsed
    if network.size:  # an empty text has no format
        assert parse_network(text, network.n) == parsed


# ---------------------------------------------------------------------------------------- index bases


@pytest.mark.parametrize(
    "text", [FROM_ONE, "[(1,3),(2,4)]\n[(1,2),(3,4)]\n[(2,3)]", "[[1,3],[2,4],[1,2],[3,4],[2,3]]"]
)
def test_a_file_that_counts_from_one_is_read_with_its_index_base(text):
    with pytest.raises(NetworkError, match=r"no comparator touches wire 0: .*index_base=1.*index_base=0"):
        parse_network(text)
    with pytest.raises(NetworkError, match=r"wire 0: .*index_base=1.*index_base=0 and n above 4"):
        parse_network(text, 4)
    for n in (None, 4):
        assert parse_network(text, n, index_base=1) == FOUR
    with pytest.raises(NetworkError, match=r"no comparator touches 0: state n"):
        parse_network(text, index_base=0)
    assert parse_network(text, 5, index_base=0).apply([9, 4, 3, 2, 1]).tolist() == [9, 1, 2, 3, 4]
    assert parse_network(text, 5).n == 5  # in either base one wire is unused, so the base is 0


def test_a_file_that_counts_from_zero_is_not_shifted():
    with pytest.raises(NetworkError, match=r"\(0, 2\) has a wire outside 1 … 4"):
        parse_network("0:2,1:3,0:1,2:3,1:2", 4, index_base=1)
    with pytest.raises(NetworkError, match=r"\(0, 2\) has a wire outside 1 … 3"):
        parse_network("0:2,1:3,0:1,2:3,1:2", index_base=1)


@pytest.mark.parametrize(("name", "wrong_base"), [("knuth", 0), ("nsc", 1), ("ascii", 1)])
def test_formats_with_a_base_by_definition_keep_it(name, wrong_base):
    text = write_network(FOUR, name)
    assert parse_network(text, index_base=1 - wrong_base) == FOUR
    with pytest.raises(NetworkError, match=f"counts wires from {1 - wrong_base} by definition"):
        parse_network(text, index_base=wrong_base)


def test_there_are_two_bases():
    with pytest.raises(NetworkError, match=r"from 0 or 1, got index_base=2"):
        parse_network(FROM_ONE, index_base=2)


def test_messages_count_as_the_file_does():
    with pytest.raises(NetworkError, match=r"\(3, 3\), number 2, joins .*from 0 here, from 1 there"):
        parse_network("[[1,2],[4,4],[3,4]]", index_base=1)


# ------------------------------------------------------------------------- wires, lines and nesting


def test_unused_wires_need_a_stated_n():
    with pytest.raises(NetworkError, match=r"of 0 … 5 no comparator touches 1, 3, 4: state n"):
        parse_network("0:2,2:5")
    assert parse_network("0:2,2:5", 6).n == 6
    with pytest.raises(NetworkError, match=r"touches 1, 2, 3, 4, 5, 6, 7, 8, …: state"):
        parse_network("0:99")
    assert parse_network("0:1,1:2").n == 3  # a list does not show wires above the highest used wire
    with pytest.raises(NetworkError, match=r"65,536 wires"):
        parse_network("0:999999999")


def test_a_line_that_is_no_layer_is_refused():
    flat = "[(0,2),(1,3),(0,1),(2,3),(1,2)]"
    assert parse_network(flat) == FOUR
    with pytest.raises(NetworkError, match=r"line 2 touches wire 0 twice.*put one into a file of its own"):
        parse_network("[(0,1)]\n[(0,1),(1,2),(0,1)]\n" + flat)


def test_brackets_of_either_kind_are_read_both_ways():
    assert parse_network("[[0,2],[1,3]]\n[[0,1],[2,3]]\n[[1,2]]", format="list") == FOUR
    assert parse_network("((0,2),(1,3),(0,1),(2,3),(1,2))", format="list") == FOUR


@pytest.mark.parametrize("text", ["[]", "[[]]", "[[],[]]", "[]\n[]"])
def test_an_empty_list_needs_its_wires(text):
    with pytest.raises(NetworkError, match=r"no comparator and no number of wires: state n"):
        parse_network(text)
    assert parse_network(text, 3) == Network.from_layers(3, [])


def test_flat_lists_are_relayered_and_layers_are_kept():
    assert parse_network("[[0,1],[2,3],[1,2]]").depth == 2
    assert parse_network("[[[0,1]],[[2,3]],[[1,2]]]").depth == 3


def test_a_stated_format_overrides_the_content():
    assert parse_network(FROM_ONE, format="list", index_base=1) == FOUR
    with pytest.raises(NetworkError, match=r"not valid JSON"):
        parse_network(FROM_ONE, format="nsc")


def test_unknown_formats_list_the_known_ones():
    with pytest.raises(NetworkError, match=f"no format 'dott' is read; known: {', '.join(readable())}$"):
        parse_network("[]", format="dott")
    with pytest.raises(NetworkError, match=f"no format 'dott' is written; known: {', '.join(writable())}$"):
        write_network(FOUR, "dott")
    with pytest.raises(NetworkError, match=r"no format 'svg' is read; known: .*nsc, "):
        parse_network("<svg/>", format="svg")


# --------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", [name for name in writable() if FORMATS[name].suffixes])
def test_a_suffix_stands_for_its_format(name, tmp_path):
    for suffix in FORMATS[name].suffixes:
        path = tmp_path / f"net{suffix.upper()}"
        assert format_of_path(path) == name
        FOUR.save(path)
        assert path.read_text(encoding="utf-8") == write_network(FOUR, name)
    with pytest.raises(
        NetworkError, match=r"no format has the suffix '\.zip'.*\.json nsc.*\.dot dot, \.gv dot"
    ):
        format_of_path(tmp_path / "net.zip")


def test_a_saved_file_keeps_its_mode_and_links(tmp_path):
    (tmp_path / "real.cn").write_text("old", encoding="utf-8")
    (tmp_path / "real.cn").chmod(0o640)
    (tmp_path / "link.cn").symlink_to("real.cn")
    FOUR.save(tmp_path / "link.cn")
    assert (tmp_path / "link.cn").is_symlink()
    assert read_network(tmp_path / "real.cn") == FOUR
    assert (tmp_path / "real.cn").stat().st_mode & 0o777 == 0o640
    FOUR.save(tmp_path / "new.cn")
    plain = tmp_path / "plain"
    plain.touch()
    assert (tmp_path / "new.cn").stat().st_mode == plain.stat().st_mode
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(error, tmp_path, monkeypatch):
    path = tmp_path / "net.cn"
    path.write_text("old", encoding="utf-8")

    def fail(*_):
        raise error

    monkeypatch.setattr("nsc.atomic.os.replace", fail)
    with pytest.raises((NetworkError, KeyboardInterrupt)):
        FOUR.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["net.cn"]
    assert path.read_text(encoding="utf-8") == "old"


def test_paths_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path, "Is a directory"),
        (tmp_path / "missing" / "net.cn", "missing is no folder: make it first"),
        (tmp_path / "file" / "net.cn", "file is no folder: make it first"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(NetworkError) as refusal:
            FOUR.save(path, "cn")
        message = str(refusal.value)
        assert message.startswith(f"cannot write {path}: ")
        assert message.endswith(reason)
        # Nor is anything said of the file that is written first, beside the path.
        assert ".tmp" not in message


def test_files_beyond_the_limit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("nsc.compiler.formats.files.MOST_BYTES", 1 << 20)
    path = tmp_path / "net.cn"
    path.write_bytes(b" " * (1 << 20) + b"0:1")
    with pytest.raises(NetworkError, match=r"larger than 1 MB"):
        read_network(path)

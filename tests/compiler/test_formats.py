"""Catches a reader that refuses a good file, takes a bad one, or says something else than what is wrong."""

import json
import tracemalloc
import warnings

import pytest
from hypothesis import given, settings
from strategies import networks

from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import LONGEST_PLAIN, parse_network, read_network, write_network
from nsc.compiler.network import Network
from nsc.errors import NetworkError

FOUR = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]])
MEGABYTE = 1 << 20
# The same 4-sorter in every format, and in the forms of a list.
FOUR_AS = {
    "nsc": '{"format":"nsc-network/1","n":4,"layers":[[[0,2],[1,3]],[[0,1],[2,3]],[[1,2]]]}',
    "sorterhunter": '{"N":4,"L":5,"D":3,"nw":[[0,2],[1,3],[0,1],[2,3],[1,2]]}',
    "sorterhunter, its log": "{'N':4,'L':5,'D':3,'sw':'','nw':[(0,2),(1,3),(0,1),(2,3),(1,2)]}",
    "list": "[(0,2),(1,3)]\n[(0,1),(2,3)]\n[(1,2)]",
    "list, flat": "[[0,2],[1,3],[0,1],[2,3],[1,2]]",
    "list, Knuth's": "[1:3][2:4][1:2][3:4][2:3]",
    "list, colons": "0:2,1:3\n0:1,2:3\n1:2",
    "list, pairs": "(0,2),(1,3)\n(0,1),(2,3)\n(1,2)",
    "list, code": "SWAP(0,2); SWAP(1,3); SWAP(0,1); SWAP(2,3); SWAP(1,2);",
    "ascii": "0 ─○────○───────\n1 ─┼○───●───○───\n2 ─●┼───○───●───\n3 ──●───●───────\n      ┆   ┆   ┆",
}


@pytest.mark.parametrize(
    "text",
    [
        "\n  [ (0, 2) , (1, 3) ],\r\n\r\n[(2,3),(0,1)],\r\n[(1,2)],\r\n",
        '{"N":4,"L":5,"D":3,"symmetric":true,"nw":[[0,2],[1,3],[0,1],[2,3],[1,2]]}',
        '{"nw":[[1,3],[0,2],[2,3],[0,1],[1,2]],"N":4}',
        '{"format":"nsc-network/1","n":4,"layers":[[[0,2,1,2]],[],[[0,1,2,2]],[[1,2]]]}',
        '\ufeff{"format":"nsc-network/1","n":4,"layers":[[[0,2],[1,3]],[[0,1],[2,3]],[[1,2]]]}',
        "[[[0, 2], [1, 3]], [], [[0, 1], [2, 3]], [[1, 2]]]",
        "[[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]]",
        "SorterHunter V0.4\n{'N':4,'L':6,'D':3,'sw':'','nw':[(0,1),(0,2),(1,3),(0,1),(2,3),(1,2)]}\n"
        "Iteration 5\n{'N':4,'L':5,'D':3,'sw':'x','nw':[(0,2),(1,3),(0,1),(2,3),(1,2)]}\nIteration 6",
        "0:2,1:3,0:1,2:3,1:2,",
        "\r\n 0 : 2,\r\n\r\n1:3\r\n0:1,2:3,1:2",
        "(0,2)\n(1,3);\n(0,1);(2,3),(1,2)",
        "0,2 1,3 0,1 2,3 1,2",
        "0, 2\n1, 3\n0, 1\n2, 3\n1, 2",
        "0 2 1 3\n\n0 1 2 3\n1\t2",
        "0 2, 1 3, 0 1, 2 3, 1 2",
        "# mine\n0:2,1:3 # at once\n0:1,2:3\n1:2",
        "// mine\n\n[(0,2),(1,3)]\n/* then */\n[(0,1),(2,3)]\n[(1,2)] // last",
        "/* mine */ [1:3][2:4] // at once\n[1:2][3:4][2:3]",
        '# mine\n{"N":4,"nw":[[0,2],[1,3],[0,1],[2,3],[1,2]]}',
        "# mine\n[[0,2],[1,3],[0,1],[2,3],[1,2]]",
        "#define S(a) C(0,1); \\\n C(1,3);\n[(0,2),(1,3)]\n[(0,1),(2,3)]\n[(1,2)]",
        "// layer 0\ncas(0, 2)\ncas(1, 3) /* SWAP(0,1);\n */\ncas(0, 1), cas(2, 3) # 3\ncas(1, 2)",
        "#define min_max(a,b) swap(&d[a], &d[b])\nmin_max(0,2);min_max(1,3);\n"
        "min_max(0,1);min_max(2,3);min_max(1,2);",
    ],
)
def test_the_same_sorter_in_every_format(text, tmp_path):
    for n in (None, 4):
        assert parse_network(text, n) == FOUR
    path = tmp_path / "network.txt"
    path.write_text(text, encoding="utf-8")
    assert read_network(path) == FOUR


def test_every_example_is_the_same_sorter():
    for name, text in FOUR_AS.items():
        for format_ in (None, name.partition(",")[0]):
            assert parse_network(text, format=format_) == FOUR


@settings(max_examples=60)
@given(networks(wires=(1, 24)))
def test_progressions_are_read_back(network):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nsc.compiler.formats.json_lists.LONGEST_PLAIN", -1)
        assert parse_network(write_network(network)) == network


def test_large_networks_are_written_as_progressions():
    network = FAMILIES["odd_even"](512)
    assert network.size > LONGEST_PLAIN
    text = write_network(network)
    assert len(text) < 15_000
    assert text.splitlines()[3] == "  [[0,1,2,256]],"
    assert parse_network(text) == network


def nsc(n, layers):
    return json.dumps({"format": "nsc-network/1", "n": n, "layers": layers})


def flat(n, pairs):
    return json.dumps({"N": n, "nw": pairs})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: found ..: comparators are"),
        ("hello", "line 1: found .hello.: comparators are .0,2., .0,2., 0:2 or SWAP"),
        (
            "[(0,2),(1,3)]\n(0,1)",
            r"line 2: found .\(0,1\).: expected nothing but comparators such as \(1,2\)",
        ),
        ("[(0,2),(1,3)]\n[(0,1),(2,-3)]", r"line 2: found .\(2,-3\)\]"),
        ("[(0,2),(1,3)]; import os", "line 1.*import os"),
        ("[(0,1.5)]", r"line 1.*1\.5"),
        ("[(0,2),(0,1)]\n[(1,2)]", "line 1 touches wire 0 twice.*one into a file of its own"),
        ("[(0,0)]", r"\(0, 0\), number 1, joins a wire to itself"),
        ("[(0,99999999999999999999)]", "line 1: found .*99999"),
        ("[(0,999999999)]", "1000000000"),
        ("{", "line 1: found .{."),
        ("{}", "line 1: found .{}."),
        ('{"format":"nsc-network/1"', "not valid JSON"),
        ('{"format":"nsc-network/2","n":2,"layers":[]}', "nsc-network/2"),
        ('{"format":"nsc-network/1","layers":[]}', r"\"n\".*null"),
        ('{"format":"nsc-network/1","n":2}', "layers"),
        (nsc(0, []), "1 <= n"),
        (nsc(10**12, []), "1 <= n"),
        (nsc(True, []), "integer, found true"),
        (nsc("2", []), "integer"),
        (nsc(2, {}), "layers"),
        (nsc(2, [[], "x"]), "layers are lists.*x"),
        (nsc(2, [[3]]), "comparator 1.*3"),
        (nsc(2, [[[0, 1, 1]]]), r"\[0, 1, 1\]"),
        (nsc(2, [[[0, 1.0]]]), r"\[0, 1\.0\]"),
        (nsc(2, [[[False, True]]]), "false, true"),
        (nsc(2, [[[0, 2]]]), r"\(0, 2\).*outside 0 … 1"),
        (nsc(2, [[[0, 10**400]]]), "outside"),
        (nsc(2, [[[1, 1]]]), r"\(1, 1\).*itself"),
        (nsc(4, [[[0, 1], [1, 2]]]), "wire 1 a second time"),
        (nsc(4, [[[0, 1, 0, 2]]]), "progression"),
        (nsc(4, [[[0, 1, 2, 0]]]), "progression"),
        (nsc(4, [[[0, 1, 2, 3]]]), "outside"),
        (nsc(4, [[[0, 1, 1, 2]]]), "wire 1 a second time"),
        (nsc(4, [[[0, 1], [0, 1, 1, 4]]]), "more comparators than the 4 wires"),
        ('{"nw":[]}', r"\"N\".*null"),
        ('{"N":4,"other":{"nw":[]}}', "nw"),
        (flat(2, [[0, 1, 2]]), r"comparator 1 .*\[0, 1, 2\]"),
        (flat(2, [[0, 1], [0, True]]), r"comparator 2 .*\[0, true\]"),
        (flat(2, {"0": 1}), r"\"nw\""),
        ("[[0,1],[1,1]]", r"\(1, 1\), number 2, joins a wire to itself"),
        ("[[0,1],2]", "line 1: found .2..: expected nothing but comparators"),
        ("[[[0,1]],3]", "line 1: found .3."),
        ("[[[[0,1]]],[[[0,1]]]]", "nested deeper than layers are several networks: one a file"),
        ("0:2,1-3", "line 1: found .1-3.: expected"),
        ("0:2\n1:3\n0:x", "line 3"),
        ("0:2\n1:1", r"comparator \(1, 1\), number 2, joins"),
        ("0:0123456789", "line 1"),
        ("[1:2][3-4]", r"line 1: found .\[3-4\].: .*\[1:2\]"),
        ("[1:2]\n[0:1]", r"comparator \(0, 1\) has a wire outside 1 … 2"),
        ("SWAP(0,1); CSWAP(1,2);", "line 1: found .CSWAP.1,2.;.: .* such as SWAP.1,2.$"),
        ("SWAP(0,1);\nif (x) SWAP(1,2);", "line 2.*if"),
        ("SWAP(0,1);\n\n/* SWAP(1,2);", "line 3: the comment /. has no end"),
        ("4 1\n1 2", "a table of 1 comparator from 1 is not read: write them as .0,2."),
        ("4 2\n1 2\n3 4", "a table of 2 comparators from 1 is not read: write them as .0,2."),
        ("4 5\n1 2 1 3 2\n3 4 2 4 3", "a table of 5 comparators"),
        ("layer,lo,hi\n0,0,1", "line 1: found .layer,lo,hi.: comparators are"),
        ("digraph {n=2; a [lo=0,hi=1]}", "a graph in DOT, which is not read"),
        ("<graphml/>", "XML, such as SVG or GraphML, which is not read"),
        ("{'N':4,'nw':[(0,2),(1,3", "no whole line"),
        ("x\n{'N':4,'L':2,'nw':[(0,2),(1,3]}", "line 2"),
        ("{'N':4,'L':2,'nw':(0,2)}", "line 1: comparator 1 must be .lo, hi., found 0"),
        ("{'N':x,'nw':[(0,2)]}", "line 1: not valid JSON"),
        ('{"N":4,"nw":[[0,2]],"nw":[[0,1]]}', 'the key "nw" is stated twice'),
        (
            "{'N':4,'nw':[(0,2)]}\n{'N':5,'nw':[(0,2)]}",
            r"2 networks in one file, line 1 \(4 wires, 1 comparator, 1 layer\), line 2 \(5",
        ),
    ],
)
def test_bad_files_are_refused_with_their_fault(text, message, tmp_path):
    path = tmp_path / "network.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NetworkError, match=message) as caught:
        read_network(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1000 + len(str(path))


@pytest.mark.parametrize("bad", ["[(0,1),(1,2)]", "[(0;1)]", "(0,1)"])
def test_a_bad_line_is_named_by_its_number(bad):
    text = "\n".join(["[(0,1)]", "[]", "", " [ (0, 2) , (1,3) ], ", "[(0,1),]"] * 20)
    assert parse_network(text, 4).size == 80
    with pytest.raises(NetworkError, match=r"line 101[: ]"):
        parse_network(f"{text}\n{bad}\n[(0,1)]", 4)


@pytest.mark.parametrize("n", [3, 0, -1, 10**30])
def test_a_stated_n_must_agree_and_fit_the_wires(n):
    with pytest.raises(NetworkError, match=f"4 wires, n={n} disagrees"):
        parse_network(FOUR_AS["nsc"], n)
    with pytest.raises(NetworkError, match=r"outside 0 …|1 <= n"):
        parse_network("[(0,2),(1,3)]", n)


def test_a_folder_names_the_network_in_it(tmp_path):
    with pytest.raises(NetworkError, match=f"{tmp_path}: it is a folder$"):
        read_network(tmp_path)
    (tmp_path / "network.json").write_text(write_network(FOUR), encoding="utf-8")
    with pytest.raises(NetworkError, match=f"the network of this package is {tmp_path}/network.json$"):
        read_network(tmp_path)
    assert read_network(tmp_path / "network.json") == FOUR


def test_unreadable_files_are_refused(tmp_path):
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "utf16").write_text("[(0,1)]", encoding="utf-16")
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(NetworkError, match=f"cannot read {path}: "):
            read_network(path)
    for path in (tmp_path / "binary", tmp_path / "utf16"):
        with pytest.raises(NetworkError, match=f"{path}: line 1: found "):
            read_network(path)


@pytest.mark.parametrize(
    "frame", ["%s", '{"format":%s}', '{"N":2,"nw":%s}', '{"format":"nsc-network/1","n":%s}']
)
def test_deep_nesting_is_refused(frame):
    for depth in (*range(700, 1020, 3), 100_000):  # around Python's own limit, and far beyond
        with pytest.raises(NetworkError):
            parse_network(frame % ("[" * depth + "]" * depth))


@pytest.mark.parametrize(
    "text",
    [
        '{"format":"\\u001b[2Jevil\\nnsc: done"}',
        '{"format":"\\ud800"}',
        nsc(2, ["\x1b[31m\r\n"]),
        "[(0,1)] \x1b[31m",
        "\x1b[31m",
    ],
)
def test_messages_carry_no_control_characters(text):
    with pytest.raises(NetworkError) as caught:
        parse_network(text)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("n", "layer"),
    [(10**6, [[0, 1, 1, 10**5]]), (60_000, [[0, 1, 1, 59_999]] * 2)],
    ids=["wires", "progressions"],
)
def test_a_short_file_cannot_ask_for_much_memory(n, layer):
    text = nsc(n, [layer])
    tracemalloc.start()
    try:
        with pytest.raises(NetworkError):
            parse_network(text)
        assert tracemalloc.get_traced_memory()[1] < 8 * MEGABYTE
    finally:
        tracemalloc.stop()


LOG = "SorterHunter V0.4\n{'N':4,'L':5,'D':3,'sw':'','nw':[(0,2),(1,3),(0,1),(2,3),(1,2)]}\n"


def test_a_log_that_is_cut_in_the_middle_of_a_network_is_read_with_a_warning():
    """Wherever the log is cut, the lost network may be the better one."""
    record = LOG.splitlines()[1]
    for end in range(1, len(record)):
        with pytest.warns(UserWarning, match="nsc: line 3 of the log is cut off: line 2 is read"):
            assert parse_network(LOG + record[:end]).size == 5


def test_a_log_has_a_network_for_each_number_of_wires():
    three = "{'N':3,'nw':[(0,1),(1,2)]}\n{'N':3,'nw':[(0,1),(1,2),(0,1)]}\n"
    assert parse_network(three + LOG, 3).size == parse_network(LOG + three, name="line 4").size == 3
    assert parse_network(three + LOG, 4) == FOUR


def test_a_log_that_is_whole_is_read_without_a_warning():
    for text in (LOG, LOG + LOG, LOG.strip(), LOG + "Iteration 5"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert parse_network(text).size == 5

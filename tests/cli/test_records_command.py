"""nsc records."""

import json

from commands import call, check_refused

from nsc.compiler.families import KINDS, LIST_DATE, found, known, selected


def test_records_list_what_is_smaller_than_published():
    out, err = call("records")
    assert err == ""
    for kind in KINDS:
        assert all(entry.name in out for entry in found(kind))
    assert LIST_DATE in out
    facts = json.loads(call("records", "--json")[0])
    assert facts["list_date"] == LIST_DATE
    entries = {entry["name"]: entry for entry in facts["smaller"]}
    assert len(entries) == sum(len(found(kind)) for kind in KINDS)
    assert entries["sort_27_152_13"] == {
        "name": "sort_27_152_13",
        "property": "sort",
        "n": 27,
        "size": 152,
        "depth": 13,
        "published": 153,
        "by": "hturcotte1/depth-13-sorting-networks",
        "date": "2026-09-23",
        "how": "published 153/13 without 23:26",
    }


def test_records_of_a_number_of_wires():
    out, err = call("records", "--n", 55)
    assert err == ""
    assert [line.split()[1] for line in out.splitlines() if "_55_" in line] == [
        "sort_55_432_20",
        "sort_55_447_19",
        "median_55_279_26",
        "median_55_281_23",
        "median_55_283_21",
        "median_55_307_20",
        "median_55_315_19",
        *(entry.name for kind in selected() for entry in found(kind) if entry.network.n == 55),
    ]
    assert "lower bounds: 273 and 11 proved, the published list states 299 and 12\n" in out
    facts = json.loads(call("records", "--n", 55, "--json")[0])
    assert (facts["sort"]["size"], facts["sort"]["depth"], facts["sort"]["stated_depth"]) == (432, 19, 12)
    networks = facts["median"]["networks"]
    assert [m["size"] for m in networks] == [m.size for m in known("median")[55]]
    assert [m["by"] for m in networks] == [None, None, "nsc", "nsc", "nsc"]
    selections = json.loads(call("records", "--n", 64, "--json")[0])["selections"]
    assert "top-8" in {entry["property"] for entry in selections}
    assert {entry["published"] for entry in selections} == {None}


def test_records_beyond_the_lists():
    out, _ = call("records", "--n", 100)
    assert out == "sort: best known on 100 wires: 1,034 comparators; 26 layers; lower bounds: 579 and 12\n"
    assert json.loads(call("records", "--n", 100, "--json")[0])["median"] is None
    for n in (0, 5000, 1 << 20):
        check_refused(["records", "--n", n])
    assert "records go up to 4,096 wires, got --n 5000" in call("records", "--n", 5000, code=2)[1]

"""nsc filter: a filter that is not what its output says, or a wrong kernel that nsc verify lets pass."""

import json
from pathlib import Path

import pytest
import torch
from commands import FILES, call, process

import nsc


@pytest.mark.slow("commands build")
def test_a_window_becomes_a_package_and_its_kernel_is_verified():
    result = process("filter", "3x3", "--median", "--dtype", "uint8,float32", "--deploy")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("generated/median_3x3: the median of 3x3 pixels: 9 wires, ")
    assert lines[1] == "shared with neighbours, 18.5 minima and maxima a pixel, not 34"
    assert lines[2].startswith("rank-4 on wires ")
    assert "proved: exhaustion" in lines[2]
    assert lines[-2].startswith("generated/median_3x3_torch.cpp: for programs of torch without Python")
    text = Path("generated/median_3x3_torch.cpp").read_text(encoding="utf-8")
    assert " * Filter:  1x3x3:4, as models name it\n" in text
    assert "nsc::deploy::filters<Window, nsc::uint8, nsc::float32>," in text
    assert lines[-1].startswith("built for uint8, float32, in ")
    assert "use it with: from generated import median_3x3, in a program beside generated/" in lines[-1]
    folder = Path("generated/median_3x3")
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "median_3x3.cpp"])
    x = torch.arange(9).reshape(3, 3).to(torch.uint8)
    assert nsc.load(folder)(x)[1, 1] == 4
    out, _ = call("verify", folder)
    for dtype in ("uint8", "float32"):
        assert f"built kernel, {dtype}, windows: 512 0-1 inputs, all 2^9, come out right\n" in out
        assert f"built kernel, {dtype}, images: 20 images, in every mode, come out right\n" in out
    out, _ = call("filter", "3x3", "--rank", 4)  # the same
    assert "replaced" not in out


@pytest.mark.slow("commands build")
def test_json_has_the_proofs():
    out, _ = call("filter", "2x3x4", "--rank", -2, "--name", "second", "--json")
    facts = json.loads(out)
    assert facts["name"] == "second"
    assert (facts["window"], facts["rank"]) == ([2, 3, 4], 22)
    assert {proof["verdict"] for proof in facts["proofs"]} == {"proved"}
    checked, _ = call("verify", "generated/second", "--json")
    assert [check["wrong"] for check in json.loads(checked)["kernel"]] == [None] * 7


@pytest.mark.slow("commands build")
def test_a_row_a_column_and_a_box_with_sides_of_1_are_verified():
    for size in ("3x1", "1x3x3"):
        call("filter", size, "--rank", 1, "--name", "least_but_one")
        checked, _ = call("verify", "generated/least_but_one", "--json")
        assert [check["wrong"] for check in json.loads(checked)["kernel"]] == [None] * 7


def test_a_wrong_kernel_is_found():
    """The manifest would refuse an edited source, so the edited one brings a manifest that fits."""
    from nsc.contract.manifest import digest

    call("filter", "3x3", "--median")
    folder = Path("generated/median_3x3")
    source, manifest = folder / "median_3x3.cpp", folder / "manifest.json"
    text = source.read_text(encoding="utf-8")
    edited = text.replace("Form::order(w0, w2);", "Form::order(w2, w0);")
    edited = edited.replace("give(5, x, ", "give(5, x, 1 | ")
    assert edited.count("1 | ") == 1
    assert edited.count("(w2, w0)") == 1
    source.write_text(edited, encoding="utf-8")
    out, _ = call("verify", folder, code=2)
    facts = json.loads(manifest.read_text(encoding="utf-8"))
    facts["files"][source.name] = digest(edited)
    manifest.write_text(json.dumps(facts), encoding="utf-8")
    out, _ = call("verify", folder, code=1)
    assert "comes out wrong" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["3x3"], "--median or --rank"),
        (["2x5", "--median"], "say --rank 4 or --rank 5"),
        (["16x16", "--median"], "at most 225 values, got 16x16 = 256"),
        (["3x3", "--rank", "9"], "must be in 0 … 8"),
    ],
)
def test_bad_options_are_refused(words, message):
    _, err = call("filter", *words, code=2)
    assert message in err
    assert not Path("generated").exists()

"""nsc compile and nsc emit c: a result that is not what its command, output or JSON says."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import FILES, call, paths, process

import nsc
from nsc.cli.compiling import how_to_use
from nsc.compiler.families import FAMILIES
from nsc.errors import INSTALL_TORCH

pytestmark = pytest.mark.slow("commands build")


def test_compile_writes_a_package_and_says_how_to_use_it():
    result = process("compile", "bitonic", "--n", 4)
    assert (result.returncode, result.stderr) == (0, "")
    first, proof, last = result.stdout.splitlines()
    assert first == "generated/bitonic_4: 4 wires, 6 comparators, 3 layers"
    assert proof.startswith("sorts: exhaustion: ")
    load = f"nsc.load({str(Path('generated/bitonic_4').absolute())!r})"
    assert last.partition("use it with: ")[2] == (
        f"from generated import bitonic_4, in a program beside generated/; in others: {load}"
    )
    folder = Path("generated/bitonic_4")
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*FILES, "bitonic_4.cpp", "bitonic_4_c.h", "engine_f32.cpp", "tables.json"]
    )
    Path("program.py").write_text(
        "import nsc, torch; from generated import bitonic_4\n"
        "assert bitonic_4.hard_sort(torch.tensor([3.0, 1.0, 2.0, 0.0]))[0].tolist() == [0, 1, 2, 3]\n"
        f"assert {load} == bitonic_4.operator"
    )
    program = Path("program.py").absolute()
    assert subprocess.run([sys.executable, program], cwd="/", timeout=120).returncode == 0


def test_how_to_use_a_package_that_is_written_elsewhere(monkeypatch):
    assert how_to_use(Path("four")).startswith("import four, in a program beside four/; ")
    for folder in ("/tmp/four", "../four", "my-networks/four"):
        assert how_to_use(Path(folder)) == f"nsc.load({str(Path(folder).absolute())!r})"
    monkeypatch.setattr("nsc.cli.compiling.find_spec", lambda name: None)
    assert how_to_use(Path("four")).endswith(f", once PyTorch is installed: {INSTALL_TORCH}")


def test_without_cupy_the_cuda_kernels_are_written_and_cannot_be_built(monkeypatch):
    command = "compile", "bitonic", "--n", 4, "--target", "cuda", "--name", "for_gpus"
    for module in ("cupy", "cupy.cuda"):  # another test may have loaded both
        monkeypatch.setitem(sys.modules, module, None)
    said = "the CUDA kernels are written and cannot be built here, without CuPy: pip install cupy-cuda13x"
    assert said in call(*command)[0]
    assert Path("generated/for_gpus/for_gpus.cu").exists()
    assert "no CUDA compiler" in call(*command, "--arch", "sm_90", code=2)[1]


def test_a_selection_reaches_the_package_and_its_command():
    line = "compile bitonic --n 6 --target cuda --top-k 1 --remove-redundant"
    facts = json.loads(call(*line.split(), "--out", "there", "--json")[0])
    manifest = json.loads(Path(facts["folder"], "manifest.json").read_text(encoding="utf-8"))
    assert (facts["name"], facts["folder"]) == (
        "bitonic_6_top_1_remove_redundant",
        "there/bitonic_6_top_1_remove_redundant",
    )
    assert facts["size"] < 24
    assert (manifest["outputs"], manifest["command"]) == ([[5, 5]], f"nsc {line}")


def test_a_second_compile_changes_nothing_and_another_folder_gets_the_same_bytes():
    call("compile", "bitonic", "--n", 4)
    folder = Path("generated/bitonic_4")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    out, err = call("compile", "bitonic", "--n", 4)
    assert "built before" in out
    assert err == ""
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before
    call("compile", "bitonic", "--n", 4, "--out", "two/deep")
    for path in folder.iterdir():
        assert path.read_bytes() == (Path("two/deep/bitonic_4") / path.name).read_bytes()


def test_compile_says_that_it_replaced_another_package():
    line = "compile odd_even --n 3 --relaxation cauchy --target cuda"
    assert call(*line.split())[0].startswith("generated/odd_even_3_cauchy")
    assert "replaced" not in call(*line.split(), "--name", "three")[0]
    out, _ = call(*line.split(), "--art-lambda", 0, "--name", "three")
    assert "replaced: generated/three held another package" in out.splitlines()
    facts = json.loads(call(*line.split(), "--name", "three", "--json")[0])
    assert facts["replaced"] is True


def test_compile_prints_json_and_the_build_command(cache):
    out, err = call("compile", "bitonic", "--n", 4, "--json")
    facts = json.loads(out)
    assert err == ""
    assert (facts["name"], facts["n"], facts["size"], facts["depth"]) == ("bitonic_4", 4, 6, 3)
    assert (facts["proof"]["verdict"], facts["proof"]["method"]) == ("proved", "exhaustion")
    assert facts["network"] == FAMILIES["bitonic"](4).digest
    assert Path(facts["folder"], "manifest.json").is_file()
    (binary,), (command,) = facts["binaries"], facts["commands"]
    assert Path(binary).is_file()
    assert cache in Path(binary).parents
    assert binary in shlex.split(command)
    assert json.loads(call("compile", "bitonic", "--n", 4, "--json")[0])["cached"] is True
    assert command in call("compile", "bitonic", "--n", 4, "--verbose")[0].splitlines()
    assert command not in call("compile", "bitonic", "--n", 4)[0]


def test_every_option_reaches_the_package():
    line = (
        "compile odd_even --n 3 --relaxation cauchy --art-lambda 0.5 --error-free --unproved --dtype "
        "float64 --dtype float32,float64 --target cuda --target cuda --out mine/nets --name three"
    )
    out, _ = call(*line.split())
    facts = json.loads(Path("mine/nets/three/manifest.json").read_text(encoding="utf-8"))
    assert (facts["sigmoid"], facts["art_lambda"], facts["error_free"]) == ("cauchy", 0.5, True)
    assert list(facts["reals"]) == ["float32", "float64"]
    assert facts["name"] == "three"
    assert "from mine.nets import three, in a program beside mine/" in out
    words = shlex.split(facts["command"])
    assert words[:2] == ["nsc", "compile"]
    call(*words[1:], "--out", "again")
    for path in Path("mine/nets/three").iterdir():
        assert (Path("again/three") / path.name).read_bytes() == path.read_bytes()


def test_a_deployed_source_lies_beside_its_package():
    out, err = call("compile", "bitonic", "--n", 4, "--deploy", "--out", ".")
    file = Path("bitonic_4_torch.cpp")
    assert f"{file}: for programs of torch without Python; its first lines say how to build it\n" in out
    assert err == ""
    text = file.read_text(encoding="utf-8")
    assert " * Made by: nsc compile bitonic --n 4 --deploy\n" in text
    # Models name the kernel as they do without --deploy.
    assert f" * Kernel:  {nsc.compile('bitonic', 4).kernel.spec}, as models name it\n" in text
    facts = json.loads(call("compile", "bitonic", "--n", 4, "--deploy", "--out", ".", "--json")[0])
    assert facts["deployed"] == str(file)
    assert json.loads(call("compile", "bitonic", "--n", 4, "--json")[0])["deployed"] is None
    file.write_text("// mine", encoding="utf-8")
    before = paths()
    _, err = call("compile", "bitonic", "--n", 4, "--name", "bitonic_4", "--deploy", "--out", ".", code=2)
    assert err.startswith(
        "nsc: bitonic_4_torch.cpp exists and is no text that nsc wrote: choose another --name"
    )
    assert (file.read_text(encoding="utf-8"), paths()) == ("// mine", before)


def test_header_writes_a_c_header_and_says_how_to_use_it():
    line = "emit c best --n 5 --dtype int32,uint8"
    out, err = call(*line.split(), "--out", "include")
    first, proof, last = out.splitlines()
    assert first == "include/best_5.h: 5 wires, 9 comparators, 5 layers"
    assert proof.startswith("sorts: exhaustion: ")
    assert last.endswith('use it with: #include "best_5.h" and best_5_int32(x, values)')
    assert (err, paths()) == ("", ["include", "include/best_5.h"])
    text = Path("include/best_5.h").read_text(encoding="utf-8")
    assert text == nsc.emit("c", "best", 5, dtypes=["uint8", "int32"])
    assert f" * Made by: nsc {line}\n" in text
    assert " * Proof:   sorts every input, by exhaustion: " in text


def test_an_approximate_median_is_emitted_with_what_is_proved_of_it():
    triples = [[0, 1], [3, 4], [6, 7], [1, 2], [4, 5], [7, 8], [0, 1], [3, 4], [6, 7]]
    Path("near.json").write_text(json.dumps([*triples, [1, 4], [4, 7], [1, 4]]), encoding="utf-8")
    _, err = call("emit", "c", "near.json", "--median", code=1)
    assert "does not select median" in err
    call("emit", "c", "near.json", "--median", "--off-by", 1, "-o", "near.h")
    text = Path("near.h").read_text(encoding="utf-8")
    assert "near.h: approximate selection of the median, at most 1 rank off, of 9 values" in text
    assert "Made by: nsc emit c network.json --name near --median --off-by 1\n" in text
    assert "Proof:   median, at most 1 off, of every input, by exhaustion" in text
    assert "rank 4; 0 is the smallest, and ranks are at most 1 off." in text
    _, err = call("emit", "c", "near.json", "--off-by", 1, code=2)
    assert "--off-by 1 is for selections" in err


def test_a_c_header_prints_json_and_says_what_it_replaced():
    line = "emit c odd_even --n 3 --json --median --out ."
    facts = json.loads(call(*line.split())[0])
    assert (facts["name"], facts["file"]) == ("odd_even_3_median", "odd_even_3_median.h")
    assert (facts["dtypes"], facts["replaced"]) == (["float32"], False)
    assert (facts["n"], facts["proof"]["property"]) == (3, "median")
    stamp = Path(facts["file"]).stat().st_mtime_ns
    assert json.loads(call(*line.split())[0])["replaced"] is False
    assert Path(facts["file"]).stat().st_mtime_ns == stamp
    assert json.loads(call(*line.split(), "--dtype", "int8")[0])["replaced"] is True
    text = Path(facts["file"]).read_text(encoding="utf-8")
    command = re.search(r"Made by: nsc (.*)", text)[1]
    call(*command.split(), "--out", "again")
    assert Path("again", facts["file"]).read_text(encoding="utf-8") == text


def test_a_file_that_nsc_did_not_write_is_kept():
    Path("odd_even_3.h").write_text("/* mine */", encoding="utf-8")
    _, err = call("emit", "c", "odd_even", "--n", 3, "--out", ".", code=2)
    assert err.startswith("nsc: odd_even_3.h exists and is no text that nsc wrote: choose another --name")
    assert Path("odd_even_3.h").read_text(encoding="utf-8") == "/* mine */"

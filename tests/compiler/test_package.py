"""Catches a package that is written in part, over files of the user, or outside of its folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nsc.compiler import package as package_module
from nsc.compiler.package import Package, check_name, write
from nsc.contract.manifest import digest
from nsc.errors import LoweringError


def package(name="net_4", **files):
    texts = {"a.txt": "text é\n", **files}
    return Package(name, {**texts, "manifest.json": manifest_text(texts)})


def manifest_text(texts):
    facts = {"format": "nsc-package/1", "files": {name: digest(text) for name, text in texts.items()}}
    return json.dumps(facts)


def contents(folder):
    """Return every path below a folder, with the text of the files."""
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") if path.is_file() else None
        for path in folder.rglob("*")
    }


def test_a_package_is_frozen():
    files = {"a": "1"}
    frozen = Package("x", files)
    files["a"] = "2"
    assert frozen.files["a"] == "1"
    with pytest.raises(TypeError):
        frozen.files["a"] = "3"


@pytest.mark.parametrize("name", ["../x", "a.b", "a b", "a-b", "", "é", "ﬁ", "1a", "a\n"])
def test_a_name_stays_in_its_folder(name):
    with pytest.raises(LoweringError, match="name"):
        check_name(name)
    with pytest.raises(LoweringError, match="name"):
        Package(name, {})


@pytest.mark.parametrize("name", ["if", "None", "_", "__a__", "x" * 250, 3])
def test_a_name_can_be_imported(name):
    with pytest.raises(LoweringError, match="name"):
        check_name(name)


def test_every_file_is_written_byte_for_byte(tmp_path):
    original = package(b="one\r\ntwo\n")
    folder = write(original, tmp_path / "deep" / "out")
    assert folder == tmp_path / "deep" / "out" / "net_4"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        name: text.encode() for name, text in original.files.items()
    }
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".")]


def test_the_same_package_is_left_alone(tmp_path):
    folder = write(package(), tmp_path)
    stamps = {}
    for path in (folder, *folder.iterdir()):
        os.utime(path, ns=(10**18, 10**18))
        stamps[path] = path.stat().st_ino
    write(package(), tmp_path)
    assert {path: path.stat().st_ino for path in (folder, *folder.iterdir())} == stamps
    assert all(path.stat().st_mtime_ns == 10**18 for path in stamps)


def test_an_older_package_is_replaced_whole(tmp_path):
    """One that was damaged too."""
    older = write(package(old="old"), tmp_path)
    (older / "a.txt").write_text("damaged", encoding="utf-8")
    folder = write(package(new="new"), tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "manifest.json", "new"]
    assert (folder / "a.txt").read_text(encoding="utf-8") == "text é\n"
    assert sorted(path.name for path in tmp_path.iterdir()) in (["net_4"], ["__init__.py", "net_4"])


def test_a_file_of_the_users_in_an_older_package_is_kept(tmp_path):
    folder = write(package(old="old"), tmp_path)
    (folder / "__pycache__").mkdir()  # not the user's
    (folder / "thesis.txt").write_text("years of work", encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(LoweringError, match=r"'thesis.txt', which nsc did not write.*another name or folder"):
        write(package(new="new"), tmp_path)
    assert contents(tmp_path) == before
    assert write(package(old="old"), tmp_path) == folder  # nothing is replaced


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"thesis.txt": "years of work"},
        {"thesis.txt": "years of work", "manifest.json": '{"name": "a web page"}'},
    ],
)
def test_a_foreign_folder_is_not_overwritten(tmp_path, files):
    folder = tmp_path / "out" / "net_4"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(LoweringError, match=r"no nsc package.*another name or folder"):
        write(package(), tmp_path / "out")
    assert contents(tmp_path) == before


def test_a_file_or_a_link_in_place_of_the_folder_is_not_overwritten(tmp_path):
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "net_4").write_text("mine", encoding="utf-8")
    (tmp_path / "link").mkdir()
    other = write(package(old="old"), tmp_path / "other")
    (tmp_path / "link" / "net_4").symlink_to(other)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "net_4").symlink_to(tmp_path / "nowhere")
    before = contents(tmp_path)
    for out in ("file", "link", "broken"):
        with pytest.raises(LoweringError, match="no nsc package"):
            write(package(), tmp_path / out)
    assert contents(tmp_path) == before


def test_a_file_in_the_way_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    for folder in (tmp_path / "out", tmp_path / "out" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(LoweringError, match="cannot write the package"):
            write(package(), folder)
    assert contents(tmp_path) == {"out": "mine"}


@pytest.mark.parametrize("fails_at", ["write", "rename"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_half_way_leaves_the_old_package(tmp_path, monkeypatch, fails_at, error):
    folder = write(package(), tmp_path)
    before = contents(tmp_path)
    real = {"write": Path.write_text, "rename": os.rename}[fails_at]

    def fail(*arguments, **options):
        if "new" in Path(arguments[0]).name or Path(arguments[0]).parent.name.startswith(".new"):
            raise error
        return real(*arguments, **options)

    monkeypatch.setattr(
        *{"write": (Path, "write_text"), "rename": (package_module.os, "rename")}[fails_at], fail
    )
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else LoweringError):
        write(package(other="text"), tmp_path)
    monkeypatch.undo()
    assert folder.is_dir()
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("folder", "file", "marked"),
    [
        ("generated", None, True),
        ("generated", "README.md", True),
        ("generated", "__init__.py", False),
        ("fresh", None, True),
        ("mine", "README.md", False),
    ],
)
def test_folders_of_packages_become_importable(tmp_path, folder, file, marked):
    out = tmp_path / folder
    out.mkdir()
    if file:
        (out / file).write_text("mine", encoding="utf-8")
    write(package(), out)
    marker = out / "__init__.py"
    assert (marker.exists() and marker.read_text(encoding="utf-8") != "mine") == marked


def test_what_a_killed_process_left_is_removed(tmp_path):
    for left in (".new.net_4", ".old.net_4"):
        write(package(), tmp_path).rename(tmp_path / left)
    write(package(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__init__.py", "net_4"]


def test_processes_may_write_packages_of_one_name(tmp_path):
    code = (
        "from pathlib import Path; from nsc.compiler.package import Package, write\n"
        "import json, sys\n"
        "for k in range(40):\n"
        "    texts = {'a': sys.argv[1] * 50_000}\n"
        "    manifest = json.dumps({'format': 'nsc-package/1', 'files': dict.fromkeys(texts)})\n"
        "    package = Package('p', {**texts, 'manifest.json': manifest})\n"
        "    write(package, Path(sys.argv[2]))\n"
    )
    command = [sys.executable, "-c", code]
    writers = [subprocess.Popen([*command, letter, str(tmp_path)]) for letter in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    text = (tmp_path / "p" / "a").read_text(encoding="utf-8")
    assert text in ("a" * 50_000, "b" * 50_000)
    assert not list(tmp_path.glob(".*"))

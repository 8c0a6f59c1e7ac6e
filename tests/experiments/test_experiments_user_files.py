"""A user's own method and data set: one file each, trained with, and refused where they are wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from experiments import data, methods
from experiments.errors import ExperimentError
from experiments.profiles import PROFILES
from experiments.tables import TABLES
from experiments.tables.plan import Settings
from experiments.training import train

METHOD = """
from experiments.methods import Method


def start(n, temperature, generator):
    margin = 1.0 if temperature is None else temperature

    def loss(scores, truth):
        in_order = scores.gather(-1, truth.ranks.argsort(-1))
        return (margin - in_order.diff(dim=-1)).relu().mean()

    return loss


METHOD = Method("neighbours", "Neighbours", "an example", start, (0.5, 1.0), "margin")
"""

SOURCE = """
import torch
from experiments.data import Data, Part, Source


def read():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 10
    images = (labels * 25).to(torch.uint8).reshape(-1, 1, 1, 1).expand(-1, 1, 8, 8).contiguous()
    part = Part(images, labels)
    return Data(part, part, part)


SOURCE = Source("grey", "Shades of grey", "digits", 8, False, "stands in this file", read)
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    method, source = tmp_path / "neighbours.py", tmp_path / "grey.py"
    method.write_text(METHOD)
    source.write_text(SOURCE)
    return str(method), str(source)


def test_a_table_of_a_users_own_method_and_data(files: tuple[str, str]) -> None:
    method, source = files
    profile = replace(PROFILES["quick"], images=200, validations=1, validation=20, test=30)
    digest = data.fingerprint(data.load(source))
    settings = Settings(profile, ((source, digest),), 1, (method,), (5,))
    (tuning, *_) = TABLES["mnist"].tuning(settings).values()
    (panel,) = TABLES["mnist"].plan(settings, {method: 0.5})
    (planned,) = panel.runs
    assert planned.row.title == "Neighbours"
    assert planned.run.temperature == 0.5
    assert tuning.temperature == 0.5
    assert planned.run.method.startswith(f"{method}#")
    assert (planned.run.data, planned.run.data_digest) == (source, digest)
    assert train(planned.run).test.keys() == {"em", "ew", "em5"}


def test_a_record_of_a_changed_method_is_another_one(files: tuple[str, str]) -> None:
    path, _ = files
    before = methods.record_name(path)
    assert methods.record_name(before) == before
    assert methods.find(before).title == methods.find(path).title
    Path(path).write_text(METHOD + "\n# a comment\n")
    assert methods.record_name(path) != before
    with pytest.raises(ExperimentError, match="has changed since the run was planned"):
        methods.find(before)


def test_a_run_refuses_other_data_than_it_was_planned_for(files: tuple[str, str]) -> None:
    _, path = files
    before = data.fingerprint(data.load(path))
    assert data.fingerprint(data.load(path)) == before
    Path(path).write_text(SOURCE.replace("25", "24"))
    assert data.fingerprint(data.load(path)) != before
    profile = replace(PROFILES["quick"], images=200, validations=1, validation=20, test=30)
    settings = Settings(profile, ((path, before),), 1, ("soft_sort",), (5,))
    (panel,) = TABLES["mnist"].plan(settings, {})
    with pytest.raises(ExperimentError, match="are not those that the run was planned for"):
        train(panel.runs[0].run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("(0.5, 1.0)", "(0.5, 0.0)"), "grid must be a tuple of finite numbers above 0"),
        (("(0.5, 1.0)", "(0.5, 0.5)"), "the temperatures of grid must differ"),
        (('"Neighbours"', '""'), "title must be a text of one line, got ''"),
        (('"margin")', '"margin", -1.0)'), "usual must be None or a finite number above 0, got -1.0"),
    ],
)
def test_a_wrong_method_is_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    assert change[0] in METHOD
    file.write_text(METHOD.replace(*change))
    with pytest.raises(ExperimentError, match=rf"^{re.escape(str(file))}: it raises ValueError: {message}"):
        methods.find(str(file))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"digits"', '"letters"'), "no kind 'letters'; known: digits, numbers, classes"),
        (("8, False", "0, False"), "side must be a whole number above 0, got 0"),
    ],
)
def test_a_wrong_source_is_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    assert change[0] in SOURCE
    file.write_text(SOURCE.replace(*change))
    with pytest.raises(ExperimentError, match=rf"^{re.escape(str(file))}: it raises ValueError: {message}"):
        data.find(str(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("None + 1", r"read\(\) raises TypeError: unsupported operand"),
        ("Part(torch.zeros(2, 1, 8, 8), labels)", r"read\(\) raises ValueError: images are unsigned bytes"),
        ("Data(part, part[labels[:0]], part)", r"the validation part of read\(\) has no images"),
        ("Data(Part(images[..., :7], labels), part, part)", "images of side 8, as SOURCE says, found 1×8×7"),
        ("Data(part, part, Part(images, -labels))", "has the label -9, labels are 0 or more"),
        ("Data(part, part, Part(images, labels + 1))", "has the label 10, digits are 0 to 9"),
    ],
)
def test_a_read_that_fails_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(SOURCE.replace("Data(part, part, part)", text))
    with pytest.raises(ExperimentError, match=rf"^{re.escape(str(file))}: .*{message}"):
        data.load(str(file))


@pytest.mark.slow("methods of the experiments run")
def test_a_network_file_has_its_digest(tmp_path: Path) -> None:
    file = tmp_path / "net.txt"
    file.write_text("[(0,1),(2,3)]\n[(0,2),(1,3)]\n[(1,2)]\n")
    name = methods.record_name(f"{file}+cauchy")
    assert name.startswith(f"{file}#")
    assert name.endswith("+cauchy")
    assert methods.depth(name, 4) == 3
    loss = methods.find(name).start(4, None, torch.Generator())
    ranks = torch.tensor([[0, 1, 2, 3]])
    assert loss(torch.tensor([[0.0, 1.0, 2.0, 3.0]]), methods.Truth(ranks, ranks)).isfinite()
    file.write_text("[(0,1)]\n")
    with pytest.raises(ExperimentError, match="has changed"):
        methods.find(name)

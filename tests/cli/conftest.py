"""Every test of the command has an empty working folder."""

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working folder."""
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    return place

"""Every test of the command has an empty working folder."""

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Change to an empty working folder, and return it."""
    path = tmp_path / "work"
    path.mkdir()
    monkeypatch.chdir(path)
    return path

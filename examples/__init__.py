"""Examples, run from the project's folder: `python -m examples.digits`."""

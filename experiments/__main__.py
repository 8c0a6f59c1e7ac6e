"""`python -m experiments`."""

from experiments.cli import main

main(prog_name="python -m experiments")

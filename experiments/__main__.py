"""`python -m experiments`."""

from nsc.interrupts import leave_at_once

if __name__ == "__main__":
    leave_at_once()  # before the imports, which take seconds
    from experiments.cli import main

    main(prog_name="python -m experiments")

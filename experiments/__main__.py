"""`python -m experiments`."""

import sys

from nsc.cli.interrupts import leave_at_once

if __name__ == "__main__":
    leave_at_once()  # before the imports, which take seconds
    try:
        from experiments.cli import main
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("experiments", "benchmarks", "nsc"):
            raise  # a fault of the program, not of the installation
        sys.exit(f"Error: the experiments need {error.name}: pip install -e '.[experiments]'")

    main(prog_name="python -m experiments")

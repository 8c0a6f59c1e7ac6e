"""`nsc`, and `python -m nsc`."""

import sys

from nsc.interrupts import leave_at_once
from nsc.namesake import refuse_namesake


def main() -> None:
    """Run the command line."""
    try:
        refuse_namesake()
    except ImportError as error:
        print(f"nsc: {error}", file=sys.stderr)
        sys.exit(2)
    leave_at_once()  # again, for a script of another name
    from nsc.cli import main as command

    command(prog_name="nsc")


if __name__ == "__main__":
    main()

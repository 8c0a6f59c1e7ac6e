"""`nsc`, and `python -m nsc`."""

from nsc.cli.interrupts import leave_at_once


def main() -> None:
    """Run the command line."""
    leave_at_once()  # before the imports, which take most of a second
    from nsc.cli.main import main as command

    command(prog_name="nsc")


if __name__ == "__main__":
    main()

"""`python -m nsc`."""

from nsc.cli import main

if __name__ == "__main__":
    main(prog_name="nsc")

"""Finished tables as Markdown, CSV, JSON and pictures; nothing here trains.

records     the frozen records of a finished table
figures     mean, deviation, standard error; whether two can be told apart
comparing   who is first, and which of the paper's orders hold
markdown    a table as a page
listing     a table as CSV
pictures    a table as a picture
console     a table on the terminal
reading     a table as JSON, and back
files       all of them in a folder, and the report of a folder
"""

from experiments.writing.console import show
from experiments.writing.files import report, write

__all__ = ["report", "show", "write"]

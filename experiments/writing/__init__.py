"""Finished tables as JSON, Markdown and pictures. This package trains nothing.

records     the frozen records of a finished table
figures     mean, deviation, standard errors; whether two figures can be told apart
comparing   which row is first, and which of the paper's orders are hold here, too
explaining  what the figures of a page mean, in sentences
markdown    a table as a page
pictures    a table as a picture
console     a table on the terminal
json_table  a table as JSON, and back
csv_figures figures as CSV
files       these files in a folder, and the report of a folder
"""

from experiments.writing.console import show
from experiments.writing.files import report, write

__all__ = ["report", "show", "write"]

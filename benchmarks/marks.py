"""Tables in pages: programs write what they measured between two lines."""

from __future__ import annotations

# A table stands between such lines.
BEGIN, END = "<!-- measured{} -->\n", "<!-- end of measured -->\n"


def marked(page: str, table: str, name: str = "") -> str:
    """Return a page with another table between the marks of a name."""
    begin = BEGIN.format(name)
    before, rest = page.split(begin)
    return f"{before}{begin}\n{table}\n{END}{rest.partition(END)[2]}"

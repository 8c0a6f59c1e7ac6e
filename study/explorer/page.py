"""Page: from facts to one HTML file that needs no server and no network. The folder web has its parts."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from string import Template

from nsc.errors import LoweringError
from nsc.study.explorer.facts import Facts

# The parts of the page's module: each imports from those before it.
MODULES = (
    "network",
    "soft",
    "colours",
    "state",
    "elements",
    "diagram",
    "heat_map",
    "views",
    "looks",
    "legend",
    "player",
    "panels",
    "app",
)

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.mjs";\n', re.MULTILINE)
# What describes code, and its indentation, stay in the files: a page has 30 kB less. Texts of several lines
# are HTML, where indentation says nothing.
_DESCRIPTION = re.compile(r"^ */\*\*(?:[^*]|\*(?!/))*\*/\n|^ *//.*\n|^ +", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class)", re.MULTILINE)


def part(name: str) -> str:
    """Return the text of a file of the folder web."""
    return (resources.files(__package__) / "web" / name).read_text(encoding="utf-8")


def render_page(facts: Facts) -> str:
    """Return the page; the same facts, the same text."""
    module = joined_modules(MODULES)
    digest = base64.b64encode(hashlib.sha256(module.encode()).digest()).decode()
    data = json.dumps(facts, separators=(",", ":"), ensure_ascii=False)
    # JSON has < in strings alone, where it may be escaped. Only in front of these it could end the script.
    data = re.sub(r"<(?=[/!s])", r"\\u003c", data, flags=re.IGNORECASE)
    title = html.escape(f"{facts['title']} – nsc")
    style = part("explorer.css").rstrip("\n")
    page = Template(part("page.html"))
    return page.substitute(title=title, style=style, module=module, digest=digest, data=data)


def joined_modules(names: tuple[str, ...]) -> str:
    """Return some modules of the folder web as one, whose names are all in one scope.

    Raises:
        LoweringError: a module that imports from one that does not stand before it.
    """
    texts = []
    for index, name in enumerate(names):
        text = part(f"{name}.mjs")
        for imported in _IMPORT.findall(text):
            if imported not in names[:index]:
                raise LoweringError(f"{name}.mjs imports from {imported}.mjs, which must stand before it")
        text = _EXPORT.sub("", _IMPORT.sub("", _DESCRIPTION.sub("", text)))
        texts.append(f"// {name}.mjs\n{text}")
    return "\n" + "\n".join(texts)

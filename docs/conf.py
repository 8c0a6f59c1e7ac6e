"""The site that `make docs` builds. Its source is the repository, whose links it keeps."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import is_typeddict

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docutils import nodes  # noqa: E402
from latex2mathml.converter import convert  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402
from sphinx.writers.html5 import HTML5Translator  # noqa: E402

from docs.names import with_names  # noqa: E402
from examples.explorers import families, frame, records, write_pages  # noqa: E402
from nsc.version import VERSION  # noqa: E402

# Plots of the pages have the inks of all pictures.
os.environ["MATPLOTLIBRC"] = str(ROOT / "docs" / "pictures" / "inks.mplstyle")

project = "nsc"
author = "the nsc authors"
copyright = "2026, the nsc authors"
version = release = VERSION
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/*/*.md",
    "README.md",
    "DESIGN.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "benchmarks/results/*.md",
    "experiments/results/*.md",
    "examples/*.md",
    "tests/golden/*.md",
]
default_role = "py:obj"  # `name` in a docstring is a name
exclude_patterns = ["docs/_build/**", "**/.venv/**", "generated/**"]
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
]
html_theme = "furo"
pygments_dark_style = "github-dark"  # the theme's own underlines names of modules as if they were links
html_title = f"nsc {VERSION}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["site"]  # the first page's address without a name
html_show_sourcelink = False
html_use_index = html_domain_indices = False  # no page leads to them, and the search finds more
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
# README and the changelog have tables of contents of their own; a result's page begins at its second level.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # a busy machine builds kernels slowly
nb_merge_streams = True
nb_output_stderr = "remove"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
napoleon_use_ivar = True
# Names of types as the source has them, not what they stand for.
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "DTypeLike")}
smartquotes_action = "qe"  # the dashes of options stay
# The explorers that pages show, by the comment that stands for them.
_EXPLORERS = {"explorers": families(16), "explorers-of-records": records()}


def setup(app: Sphinx) -> None:
    """Have formulas as MathML, which browsers show by themselves, and the explorers."""
    app.connect("source-read", _show_explorers)
    app.connect("source-read", _show_pictures)
    app.connect("source-read", _list_names)
    app.connect("autodoc-process-signature", _name_types)
    app.connect("build-finished", _write_explorers)
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_visit_inline, None), block_renderers=(_visit_block, None)
    )


def _show_explorers(app: Sphinx, page: str, source: list[str]) -> None:
    for folder, shown in _EXPLORERS.items():
        framed = f"```{{raw}} html\n{frame(shown, f'../{folder}/')}```"
        source[0] = source[0].replace(f"<!-- {folder} -->", framed)


def _show_pictures(app: Sphinx, page: str, source: list[str]) -> None:
    """Have of each pair of pictures the one for the site's own choice of light or dark."""

    def pair(found: re.Match[str]) -> str:
        dark = re.search(r'srcset="([^"]+)"', found[0])
        facts = dict(re.findall(r'(src|alt|width)="([^"]*)"', found[0]))
        assert dark is not None
        options = f":alt: {facts['alt']}\n:width: {facts.get('width', '100%')}\n"
        return "\n\n".join(
            f"```{{image}} {file}\n{options}:class: {theme}\n```"
            for file, theme in ((facts["src"], "only-light"), (dark[1], "only-dark"))
        )

    source[0] = re.sub(r"<picture>.*?</picture>", pair, source[0], flags=re.DOTALL)


def _list_names(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = with_names(source[0])


def _spelled_out(arguments: str) -> str:
    """Have the options that a call takes as `**options` by their names and types; all have defaults."""
    modules = [module for name, module in sys.modules.items() if name.startswith("nsc.")]
    kinds = {
        name: thing.__annotations__
        for module in modules
        for name, thing in vars(module).items()
        if is_typeddict(thing)
    }

    def options(found: re.Match[str]) -> str:
        typed = kinds[found[1]]
        named = ", ".join(f"{name}: {each.__forward_arg__} = ..." for name, each in typed.items())
        return named if re.search(r"\*, ", arguments[: found.start()]) else f"*, {named}"

    return re.sub(r"\*\*options: Unpack\[(\w+)\]", options, arguments)


def _name_types(
    app: Sphinx,
    what: str,
    name: str,
    item: object,
    options: object,
    arguments: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Have types in unions by the names in autodoc_type_aliases too, not as references to these."""
    arguments, returned = (
        text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (arguments, returned)
    )
    return arguments and _spelled_out(arguments), returned


def _write_explorers(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        for folder, shown in _EXPLORERS.items():
            write_pages(Path(app.outdir) / folder, shown)


def _visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode

"""The namesake: the distribution nsc on PyPI, a statistics library whose module is called nsc too."""

from __future__ import annotations

import os

# A file of nsc 0.0.1 to 0.0.4 on PyPI; sortnets has none of this name.
_OF_NAMESAKE = os.path.join("distributions", "__init__.py")


def refuse_namesake() -> None:
    """Raise an error if the namesake's files lie among those of this package.

    Raises:
        ImportError: they do. Of the files that both have, those installed last are there.

    Cost: a look for one file.
    """
    if os.path.exists(os.path.join(os.path.dirname(__file__), _OF_NAMESAKE)):
        raise ImportError(
            "the distribution nsc, a statistics library, is installed over sortnets, and both have a module "
            "nsc: pip uninstall nsc, then install sortnets again"
        )

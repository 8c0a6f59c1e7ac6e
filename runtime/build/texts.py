"""Texts that are kept in the folder of the build cache, from one process to the next.

Who can write there can run code in this process, since libraries lie there too. So a text is trusted as they
are, by `trust.py`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from nsc.atomic import write_whole
from nsc.runtime.build.cache import note_use, user_folder
from nsc.runtime.build.trust import UntrustedError, check_folder, read_trusted, warn_untrusted

_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Texts:
    """Small texts by their names.

    Args:
        version: of nsc; another version does not see them.
    """

    version: str

    def read(self, name: str) -> str | None:
        """Return a text, or None where there is none that can be read and trusted."""
        path = self._path(name)
        try:
            check_folder(path.parent)
        except OSError:  # a build, which says so, comes soon
            return None
        try:
            text = read_trusted(path).decode()
        except UntrustedError as error:
            warn_untrusted(str(error))
            return None
        except (OSError, ValueError):
            return None
        note_use(path)
        return text if len(text) <= _MOST_BYTES else None

    def write(self, name: str, text: str) -> None:
        """Keep a text whole, for this user alone; where it cannot be written, it is not kept."""
        path = self._path(name)
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_folder(path.parent)
            write_whole(path, text, rights=0o600)

    def _path(self, name: str) -> Path:
        return user_folder() / f"{name}-{self.version}.json"

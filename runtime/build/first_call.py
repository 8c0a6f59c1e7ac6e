"""What a first call does while there is no build: the ways that users choose from."""

from __future__ import annotations

import os

from nsc.arguments import is_name
from nsc.errors import BuildError, NscError
from nsc.wording import argument, one_of

# What a kernel without a build does at its first call. A way waits for the build, or a thread builds while
# the engine, if that is there, runs the network (auto), or the plain reference without it (background). Or
# the engine runs it for good. All but the reference give the same bits.
BUILD = "NSC_BUILD"
AUTO, WAIT, BACKGROUND, ENGINE = WAYS = "auto", "wait", "background", "engine"


def way_to_build(build: str | None) -> str:
    """Return how a kernel is built, one of WAYS; None: as $NSC_BUILD says.

    Raises:
        BuildError: $NSC_BUILD is none of WAYS.
    """
    stated = build or os.environ.get(BUILD, AUTO)
    if stated not in WAYS:
        raise BuildError(f"${BUILD} must be {one_of(WAYS)}, got {stated!r}")
    return stated


def check_build(build: object, error: type[NscError]) -> None:
    """Refuse what is neither one of WAYS nor None.

    Raises:
        error: it is none of them.
    """
    if build is not None and not is_name(build, WAYS):
        raise error(f"{argument('build')} must be {one_of(WAYS)}, got {build!r}")

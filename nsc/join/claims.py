"""Claims of packages of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from nsc.contract.manifest import MANIFEST, FilterManifest, Manifest, RelaxedManifest, read_files
from nsc.join.check import Claim
from nsc.join.filter_check import filter_claim
from nsc.join.kernel_check import relaxed_claim

# By kinds of packages.
_CLAIMS: dict[str, Callable[[Mapping[str, str]], Claim]] = {
    RelaxedManifest.kind: relaxed_claim,
    FilterManifest.kind: filter_claim,
}


def claim_of(folder: Path) -> Claim:
    """Return what a package claims.

    Raises:
        PackageError: `nsc compile` did not write the folder, or its files were changed since.
    """
    files = read_files(folder)
    return _CLAIMS[Manifest.from_text(files[MANIFEST]).kind](files)

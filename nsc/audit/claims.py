"""Claims of packages of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from nsc.audit.check import Claim
from nsc.audit.kernel import relaxed_claim
from nsc.audit.windows import filter_claim
from nsc.contract.manifest import MANIFEST, FilterManifest, Manifest, RelaxedManifest, read_files

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

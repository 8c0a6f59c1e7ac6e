"""What hatchling asks of the wheel of prebuilt kernels: its version, its tag, and its libraries."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).parents[2]
# Linux of 2014 and later: the libraries take nothing newer of the C library, which tests check.
TAG = "py3-none-manylinux_2_17_x86_64"


class Metadata(MetadataHookInterface):
    """The version is nsc's, whose sources the libraries are built of."""

    def update(self, metadata: dict[str, Any]) -> None:
        version = (ROOT / "nsc" / "version.py").read_text("utf-8").split('"')[-2]
        metadata["version"] = version
        metadata["dependencies"] = [f"sortnets=={version}"]


class Libraries(BuildHookInterface[Any]):
    """Writes the libraries, which takes three minutes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root) / "sortnets_kernels"
        subprocess.run((sys.executable, "-m", "nsc.join.prebuilding", str(folder)), cwd=ROOT, check=True)
        build_data["tag"], build_data["pure_python"] = TAG, False

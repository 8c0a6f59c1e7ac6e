"""What hatchling asks of a wheel of prebuilt kernels: its version, its tag, and its libraries.

The variable SORTNETS_PLATFORM names the platform.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).parents[2]


class Metadata(MetadataHookInterface):
    """The version is nsc's, whose sources the libraries are built of."""

    def update(self, metadata: dict[str, Any]) -> None:
        version = (ROOT / "nsc" / "version.py").read_text("utf-8").split('"')[-2]
        metadata["version"] = version
        metadata["dependencies"] = [f"sortnets=={version}"]


class Libraries(BuildHookInterface[Any]):
    """Writes the libraries, which takes one to three minutes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder, platform = Path(self.root) / "sortnets_kernels", os.environ["SORTNETS_PLATFORM"]
        command = (sys.executable, "-m", "nsc.join.prebuilding", platform, str(folder))
        subprocess.run(command, cwd=ROOT, check=True)
        build_data["tag"], build_data["pure_python"] = f"py3-none-{platform}", False

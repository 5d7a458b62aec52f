"""Which version each storage is at while a forward pass runs, and how many bytes are live."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from memviz.pytorch import compat
from memviz.pytorch.recipes import Cell

if TYPE_CHECKING:
    from memviz.pytorch.saved import Away


class Live:
    """Bytes of the storages it has been shown that are still alive, and ``resident`` ones beside them."""

    def __init__(self, resident: int = 0) -> None:
        self.nbytes = resident

    def __call__(self) -> int:
        return self.nbytes

    def watch(self, storage: torch.UntypedStorage) -> None:
        """Count a storage until it is gone."""
        nbytes = storage.nbytes()
        self.nbytes += nbytes
        weakref.finalize(storage, self._gone, nbytes).atexit = False

    def _gone(self, nbytes: int) -> None:
        self.nbytes -= nbytes


@dataclass(slots=True, eq=False)
class Entry:
    """A storage's current version, and what was saved on it and may have left."""

    storage: weakref.ref[torch.UntypedStorage]
    cell: Cell
    saved: list[weakref.ref[Away]] = field(default_factory=list)


class Versions:
    """The current cell of each storage that has been seen. What no seen op made is a leaf: held, and checked for writes."""

    def __init__(self, live: Live) -> None:
        self._entries: dict[int, Entry] = {}
        self._live = live

    def _entry(self, tensor: torch.Tensor) -> Entry | None:
        if tensor.layout is not torch.strided:
            return None
        storage = tensor.untyped_storage()
        entry = self._entries.get(storage._cdata)
        return entry if entry is not None and entry.storage() is storage else None

    def known(self, tensor: torch.Tensor) -> Cell | None:
        """The tensor's cell, if it has a storage and that has been seen."""
        entry = self._entry(tensor)
        return None if entry is None else entry.cell

    def of(self, tensor: torch.Tensor) -> Cell:
        """The tensor's cell; for an unseen storage a leaf, or opaque if the tensor may change out of sight."""
        cell = self.known(tensor)
        if cell is None:
            if tensor.layout is not torch.strided:
                return Cell()
            cell = Cell(nbytes=tensor.untyped_storage().nbytes())
            if compat.plain(tensor) and tensor.is_leaf:
                cell.hold(tensor)
            self.set(tensor, cell)
        return cell

    def set(self, tensor: torch.Tensor, cell: Cell) -> None:
        """The tensor's storage is at this version from now on."""
        entry = self._entry(tensor)
        if entry is not None:
            entry.cell = cell
            return
        if tensor.layout is not torch.strided:
            return
        storage, entries = tensor.untyped_storage(), self._entries
        name = storage._cdata

        def gone(reference: object) -> None:
            if name in entries and entries[name].storage is reference:
                del entries[name]

        entries[name] = Entry(weakref.ref(storage, gone), cell)
        self._live.watch(storage)

    def note_saved(self, tensor: torch.Tensor, handle: Away) -> None:
        """Autograd was given this handle in the tensor's place."""
        entry = self._entry(tensor)
        if entry is not None:
            entry.saved.append(weakref.ref(handle))

    def saved(self, tensor: torch.Tensor) -> list[Away]:
        """The handles on the tensor's storage that are still there."""
        entry = self._entry(tensor)
        return [] if entry is None else [handle for reference in entry.saved if (handle := reference()) is not None]

    def clear(self) -> None:
        """Forget everything but the count of live bytes."""
        self._entries.clear()

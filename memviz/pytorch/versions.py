"""Which version each storage is at while a forward pass runs, and how many bytes are live."""

from __future__ import annotations

import weakref

import torch

from memviz.pytorch import compat
from memviz.pytorch.recipes import Cell


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


class Versions:
    """The current cell of each storage that has been seen. What no seen op made is a leaf: held, and checked for writes."""

    def __init__(self, live: Live) -> None:
        self._cells: dict[int, tuple[weakref.ref[torch.UntypedStorage], Cell]] = {}
        self._live = live

    def known(self, tensor: torch.Tensor) -> Cell | None:
        """The tensor's cell, if it has a storage and that has been seen."""
        if tensor.layout is not torch.strided:
            return None
        storage = tensor.untyped_storage()
        found = self._cells.get(storage._cdata)
        return found[1] if found is not None and found[0]() is storage else None

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
        if tensor.layout is not torch.strided:
            return
        storage = tensor.untyped_storage()
        name, found = storage._cdata, self._cells.get(storage._cdata)
        if found is not None and found[0]() is storage:
            self._cells[name] = (found[0], cell)
            return
        cells = self._cells

        def gone(reference: object) -> None:
            if name in cells and cells[name][0] is reference:
                del cells[name]

        self._cells[name] = (weakref.ref(storage, gone), cell)
        self._live.watch(storage)

    def clear(self) -> None:
        """Forget everything but the count of live bytes."""
        self._cells.clear()

"""Which version each storage is at while a forward pass runs."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import torch

from memviz.pytorch import compat
from memviz.pytorch.recipes import Cell

if TYPE_CHECKING:
    from memviz.pytorch.saved import Dropped
    from memviz.pytorch.scope import Scope


class Entry(weakref.ref):  # type: ignore[type-arg]
    """A storage while it lives, with its current version and what was dropped of it."""

    __slots__ = ("cell", "dropped", "name")

    cell: Cell
    dropped: list[weakref.ref[Dropped]] | None
    name: int


class Versions:
    """The current cell of each storage that has been seen.

    A storage that no seen op has made is a leaf: held, and checked for writes. So is one that had no recipe made for it, once a
    recipe reads it, where the scope knows which are wanted; else a tensor that is no leaf of autograd's may change out of sight, and
    is opaque.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._entries: dict[int, Entry] = {}
        entries = self._entries

        def gone(entry: Entry) -> None:
            if entries.get(entry.name) is entry:
                del entries[entry.name]

        self._gone = gone

    @property
    def holding(self) -> bool:
        """Whether what has no recipe is held for the recipes that read it."""
        return bool(self._scope.wanted)

    def entry(self, tensor: torch.Tensor) -> Entry | None:
        """The tensor's entry, if it has a storage and that has been seen."""
        if tensor.layout is not torch.strided:
            return None
        storage = tensor.untyped_storage()
        entry = self._entries.get(storage._cdata)
        return entry if entry is not None and entry() is storage else None

    def known(self, tensor: torch.Tensor) -> Cell | None:
        """The tensor's cell, if it has a storage and that has been seen."""
        entry = self.entry(tensor)
        return None if entry is None else entry.cell

    def of(self, tensor: torch.Tensor) -> Cell:
        """The tensor's cell; for an unseen storage a leaf, or opaque if the tensor may change out of sight."""
        entry = self.entry(tensor)
        if entry is not None and not (entry.cell.blank and self.holding):
            return entry.cell
        cell = Cell()
        if compat.plain(tensor) and (tensor.is_leaf or self.holding):
            cell.leaf = tensor if tensor.is_leaf else compat.sibling(tensor)
        self.set(tensor, cell)
        return cell

    def set(self, tensor: torch.Tensor, cell: Cell) -> None:
        """The tensor's storage is at this version from now on."""
        entry = self.entry(tensor)
        if entry is not None:
            entry.cell = cell
        elif tensor.layout is torch.strided:
            self.add(tensor, cell)

    def add(self, tensor: torch.Tensor, cell: Cell) -> None:
        """As ``set``, for a storage that has not been seen."""
        storage = tensor.untyped_storage()
        entry = Entry(storage, self._gone)
        entry.cell, entry.dropped, entry.name = cell, None, storage._cdata
        self._entries[entry.name] = entry

    def note_dropped(self, tensor: torch.Tensor, handle: Dropped) -> None:
        """Autograd was given this handle in the tensor's place."""
        entry = self.entry(tensor)
        if entry is not None:
            if entry.dropped is None:
                entry.dropped = []
            entry.dropped.append(weakref.ref(handle))

    def dropped(self, tensor: torch.Tensor) -> list[Dropped]:
        """The handles on the tensor's storage that are still there."""
        entry = self.entry(tensor)
        if entry is None or entry.dropped is None:
            return []
        return [handle for reference in entry.dropped if (handle := reference()) is not None]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

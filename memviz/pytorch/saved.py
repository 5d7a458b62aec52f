"""What autograd gets in the place of a saved tensor: one that stays, one that may leave, one that is made again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from memviz.pytorch.recipes import Tally, View, recompute

if TYPE_CHECKING:
    import torch

    from memviz.pytorch.recipes import Cell
    from memviz.pytorch.swapping import Slot


def _checked(tensor: torch.Tensor, version: int | None) -> torch.Tensor:
    """The tensor; autograd's RuntimeError if it was modified in place since it was saved (hooks switch its own check off)."""
    if version is not None and tensor._version != version:
        msg = (
            f"one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"a tensor of shape {tuple(tensor.shape)} is at version {tensor._version}; expected version {version}"
        )
        raise RuntimeError(msg)
    return tensor


class Kept:
    """A saved tensor that stays."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.version = None if tensor.is_inference() else tensor._version

    def storage(self) -> torch.UntypedStorage | None:
        """Its storage, unless it has been overwritten."""
        return self.tensor.untyped_storage() if self.version is None or self.tensor._version == self.version else None

    def unpack(self) -> torch.Tensor:
        """The tensor; RuntimeError if it was modified in place since it was saved."""
        return _checked(self.tensor, self.version)


class Swapped:
    """A saved tensor whose value may leave the device."""

    __slots__ = ("place", "slot", "view")

    def __init__(self, slot: Slot, view: View) -> None:
        self.slot, self.view = slot, view
        self.place = len(slot.sources) - 1

    def unpack(self) -> torch.Tensor:
        """The tensor, fetched if it has left; RuntimeError if it was modified in place before it could leave."""
        if self.slot.sources:
            _checked(*self.slot.sources[self.place])
        return self.view.on(self.slot.storage())


class Dropped:
    """A saved tensor that is made again when its gradient needs it; it stays cached while other saves of it wait (E2)."""

    __slots__ = ("kept", "tally", "unpacked", "view")

    def __init__(self, view: View, tally: Tally) -> None:
        self.view, self.tally = view, tally
        self.unpacked = False
        self.kept: Kept | None = None
        view.cell.waiting += 1

    def rebind(self, cell: Cell, tensor: torch.Tensor) -> None:
        """The op that saved it has written to it: what counts is the version after that, kept if it can't be made again."""
        self.view.cell.waiting -= 1
        cell.waiting += 1
        self.view = replace(self.view, cell=cell)
        if not cell.replayable:
            self.kept = Kept(self.view.on(tensor.untyped_storage()))

    def unpack(self) -> torch.Tensor:
        """The tensor, recomputed."""
        if self.kept is not None:
            return self.kept.unpack()
        tensor = self.view.on(recompute(self.view.cell, self.tally))
        self._settle()
        return tensor

    def _settle(self) -> None:
        if not self.unpacked:
            self.unpacked = True
            self.view.cell.waiting -= 1
            if not self.view.cell.waiting:
                self.view.cell.cached = None

    def __del__(self) -> None:
        self._settle()

"""What autograd gets in the place of a saved tensor: one that stays, or one that is made again. Swapping has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memviz.pytorch import compat
from memviz.pytorch.recipes import Cell, Tally, learn, recompute
from memviz.pytorch.views import Window, disjoint

if TYPE_CHECKING:
    import torch


def checked(tensor: torch.Tensor, version: int | None) -> torch.Tensor:
    """The tensor; autograd's RuntimeError if it was modified in place since it was saved (hooks switch its own check off)."""
    if version is not None and tensor._version != version:
        msg = (
            f"one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"a saved tensor is at version {tensor._version}; expected version {version}"
        )
        raise RuntimeError(msg)
    return tensor


class Kept:
    """A saved tensor that stays."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, tensor: torch.Tensor, *, plain: bool) -> None:
        # What is not plain is held as it is, since its detached twin may count versions of its own.
        self.tensor = compat.sibling(tensor) if plain and not tensor.is_leaf else tensor
        self.version = None if not plain and tensor.is_inference() else tensor._version

    def held(self) -> torch.Tensor | None:
        """The tensor, unless it has been overwritten."""
        return self.tensor if self.version is None or self.tensor._version == self.version else None

    def unpack(self) -> torch.Tensor:
        """The tensor; RuntimeError if it was modified in place since it was saved."""
        return checked(self.tensor, self.version)


class Dropped:
    """A saved tensor that is made again when its gradient needs it; it stays cached while other saves of it wait (E2).

    What autograd would have held is the storage itself, so a later write shows: as an error if the tensor's version
    counter moved, and as the new content if it did not (a write through ``.data``, or by the op that saved it). A probe, a
    tensor of no bytes with the same counter, tells the two apart; ``overwritten`` holds on to the storage for the second.
    """

    __slots__ = ("__weakref__", "_content", "_probe", "cell", "tally", "unpacked", "version", "window")

    def __init__(self, tensor: torch.Tensor, cell: Cell, tally: Tally) -> None:
        self.cell, self.window, self.version = cell, Window.of(tensor), tensor._version
        self._probe = compat.probe(tensor)
        self._content: torch.Tensor | None = None
        self.tally = tally
        self.unpacked = False
        cell.waiting += 1
        tally.dropped += 1

    def overwritten(self, tensor: torch.Tensor) -> None:
        """An op writes to the storage through this tensor."""
        if self._content is None and not disjoint(self.window, tensor):
            self._content = self.window.on(tensor.untyped_storage())

    def settle(self) -> None:
        """Let go of the storage if the write has made the saved tensor an error."""
        if self._content is not None and self._probe._version != self.version:
            self._content = None

    def unpack(self) -> torch.Tensor:
        """The tensor; RuntimeError if it was modified in place since it was saved."""
        checked(self._probe, self.version)
        return self._rebuild() if self._content is None else self._content

    def _rebuild(self) -> torch.Tensor:
        tensor = recompute(self.cell, self.tally)
        self._done()
        return self.window.through(tensor)

    def _done(self) -> None:
        if not self.unpacked:
            self.unpacked = True
            self.tally.done += 1
            self.cell.waiting -= 1
            if not self.cell.waiting:
                self.cell.cached = None

    def __del__(self) -> None:
        if not self.unpacked and self.tally.ops:
            learn(self.cell)  # Backward has no use for this save: whoever has may come in the next step.
        self._done()

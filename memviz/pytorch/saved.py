"""What autograd gets in the place of a saved tensor: one that stays, one that may leave, one that is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memviz.pytorch.recipes import Tally, View, recompute
from memviz.pytorch.views import disjoint

if TYPE_CHECKING:
    import torch

    from memviz.pytorch.swapping import Slot


def _checked(tensor: torch.Tensor, version: int | None) -> torch.Tensor:
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

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.version = None if tensor.is_inference() else tensor._version

    def storage(self) -> torch.UntypedStorage | None:
        """Its storage, unless it has been overwritten."""
        return self.tensor.untyped_storage() if self.version is None or self.tensor._version == self.version else None

    def unpack(self) -> torch.Tensor:
        """The tensor; RuntimeError if it was modified in place since it was saved."""
        return _checked(self.tensor, self.version)


class Away:
    """A saved tensor whose bytes may be gone while it waits.

    What autograd would have held is the storage itself, so a later write shows: as an error if the tensor's version
    counter moved, and as the new content if it did not (a write through ``.data``, or by the op that saved it). A probe, a
    tensor of no bytes with the same counter, tells the two apart; ``overwritten`` holds on to the storage for the second.
    """

    __slots__ = ("__weakref__", "_content", "_probe", "version", "view")

    def __init__(self, tensor: torch.Tensor, view: View) -> None:
        self.view, self.version = view, tensor._version
        self._probe = tensor.detach()
        self._probe.data = tensor.new_empty(0)
        self._content: torch.Tensor | None = None

    def overwritten(self, tensor: torch.Tensor) -> None:
        """An op writes to the storage through this tensor."""
        if self._content is None and not disjoint(self.view, tensor):
            self._content = self.view.on(tensor.untyped_storage())

    def settle(self) -> bool:
        """Let go of the storage if the write has made the saved tensor an error; whether it still holds on to it."""
        if self._content is not None and self._probe._version != self.version:
            self._content = None
        return self._content is not None

    def unpack(self) -> torch.Tensor:
        """The tensor; RuntimeError if it was modified in place since it was saved."""
        _checked(self._probe, self.version)
        return self.rebuild() if self._content is None else self._content

    def rebuild(self) -> torch.Tensor:
        """The tensor as it was saved."""
        raise NotImplementedError


class Swapped(Away):
    """A saved tensor whose value may leave the device."""

    __slots__ = ("slot",)

    def __init__(self, tensor: torch.Tensor, view: View, slot: Slot) -> None:
        super().__init__(tensor, view)
        self.slot = slot

    def rebuild(self) -> torch.Tensor:
        """The tensor, fetched if it has left."""
        return self.view.on(self.slot.storage())


class Dropped(Away):
    """A saved tensor that is made again when its gradient needs it; it stays cached while other saves of it wait (E2)."""

    __slots__ = ("tally", "unpacked")

    def __init__(self, tensor: torch.Tensor, view: View, tally: Tally) -> None:
        super().__init__(tensor, view)
        self.tally = tally
        self.unpacked = False
        view.cell.waiting += 1

    def rebuild(self) -> torch.Tensor:
        """The tensor, recomputed."""
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

"""One storage that may leave the device, and the saved tensors that show it (E6)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from memviz.pytorch import compat
from memviz.pytorch.saved import checked
from memviz.pytorch.views import Window

if TYPE_CHECKING:
    import torch

    from memviz.pytorch.swapping import Swapper
    from memviz.pytorch.transport import Parcel


class Slot:
    """One storage, on the device or off it. However often it is saved, it moves once.

    It leaves only while nobody but its saves holds the storage, and nothing was written since they were made: so nobody can write to
    it any more.
    """

    here: bool = True
    parcel: Parcel | None = None
    tensor: torch.Tensor | None = None
    """The bytes that came back."""
    arriving: bool = False

    def __init__(self, address: int, nbytes: int, name: object, swapper: Swapper) -> None:
        self.address, self.nbytes, self.name, self.swapper = address, nbytes, name, swapper
        self._saves: list[weakref.ref[Swapped]] = []

    def add(self, save: Swapped) -> None:
        """One more save of the storage."""
        save.slot = self
        self._saves.append(weakref.ref(save))

    def saves(self) -> list[Swapped]:
        """Those that are not done with."""
        return [save for reference in self._saves if (save := reference()) is not None]

    def may_leave(self) -> bool:
        """Whether nobody but its saves holds the storage, and none was written to."""
        saves = self.saves()
        alone = compat.num_owners(saves[0].saved.untyped_storage()) == len(saves) + 1
        return alone and all(save.saved._version == save.version for save in saves)

    def leave(self) -> None:
        """Let go of the storage."""
        self.here = False
        for save in self.saves():
            save.saved = Window.of(save.saved)

    def held(self) -> torch.Tensor | None:
        """A tensor on the value's storage, fetched if it has left; None if it was overwritten."""
        if not self.here:
            return self.swapper.fetch(self)
        save = self.saves()[0]
        return save.saved if save.saved._version == save.version else None

    def __del__(self) -> None:
        if self.parcel is not None:
            self.parcel.discard()
        self.swapper.forget(self)


class Swapped:
    """A saved tensor whose value may leave the device: ``saved`` is a sibling of it, or its window once the value has left.

    It gets a slot when there is reason to look at what could leave, which may never come.
    """

    __slots__ = ("__weakref__", "saved", "slot", "swapper", "version")

    def __init__(self, tensor: torch.Tensor, swapper: Swapper) -> None:
        self.saved: Any = compat.sibling(tensor)
        self.version, self.swapper = tensor._version, swapper
        self.slot: Slot | None = None

    def unpack(self) -> torch.Tensor:
        """The tensor; RuntimeError if it was modified in place since it was saved."""
        slot = self.slot
        if slot is None:
            self.swapper.backward()
            slot = self.slot
        if slot is None or slot.here:
            if slot is not None:
                self.swapper.stay(slot)
            return checked(self.saved, self.version)
        return self.saved.on(self.swapper.fetch(slot).untyped_storage())

"""Saved values that leave the device while they wait: which, when, and when they come back (E6)."""

from __future__ import annotations

import time
import warnings
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING

import torch

from memviz.core.plan import Order
from memviz.core.timeline import Transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from memviz.core.plan import Swap
    from memviz.pytorch.transport import Parcel, Transport

IN_FLIGHT = 0.02
"""The part of the limit that may be on its way out at once; the step waits for the rest, so that a peak can be predicted."""


class Slot:
    """One storage, on the device or off it. However often it is saved, it moves once.

    ``sources`` are the tensors that were saved, with their versions: a value that was written to after a save stays, so
    that unpacking it is the error that autograd makes of it.
    """

    __slots__ = ("__weakref__", "fetching", "key", "nbytes", "parcel", "sources", "swapper", "tensor")

    def __init__(self, tensor: torch.Tensor, key: str, swapper: Swapper) -> None:
        self.tensor: torch.Tensor | None = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
        self.sources: list[tuple[torch.Tensor, int]] = []
        self.key, self.nbytes, self.swapper = key, tensor.untyped_storage().nbytes(), swapper
        self.parcel: Parcel | None = None
        self.fetching = False

    @property
    def intact(self) -> bool:
        """Whether nothing was written to what was saved."""
        return all(tensor._version == version for tensor, version in self.sources)

    def storage(self) -> torch.UntypedStorage:
        """The value's storage on the device, fetched if it has left."""
        return self.swapper.fetch(self).untyped_storage()

    def __del__(self) -> None:
        if self.parcel is not None:
            self.parcel.discard()


class Swapper:
    """Decides what leaves and when it is fetched; a transport moves it.

    After each op, which may yet write to what it saves: while ``live()``, the bytes on the device, is above ``occupancy`` of the limit, waiting
    values leave in ``order``. Memory goes on the calling thread, once the bytes are away. What can't be put away stays.
    """

    def __init__(self, settings: Swap, limit: int, live: Callable[[], int], transport: Transport) -> None:
        self.settings, self.live, self.transport = settings, live, transport
        self.threshold = settings.occupancy * limit
        self.stall_seconds = 0.0
        self.transfers: list[Transfer] = []
        self._bound = IN_FLIGHT * limit
        self._waiting: OrderedDict[int, weakref.ref[Slot]] = OrderedDict()
        self._in_flight: OrderedDict[int, tuple[Slot, float]] = OrderedDict()
        self._urgent: list[Slot] = []
        self._away: list[weakref.ref[Slot]] = []
        self._broken = False

    def add(self, tensor: torch.Tensor, key: str, *, now: bool = False) -> Slot:
        """Note a saved value; it leaves when the device fills up, or right after the op that runs."""
        slot = Slot(tensor, key, self)
        slot.sources.append((tensor, tensor._version))
        name, waiting = id(slot), self._waiting
        waiting[name] = weakref.ref(slot, lambda _gone: waiting.pop(name, None))
        if now:
            self._urgent.append(slot)
        return slot

    def relieve(self) -> None:
        """Send waiting values off the device until it is below the threshold, or none is left."""
        self._settle(self._bound)
        while self._urgent:
            self._send(self._urgent.pop())
            self._settle(self._bound)
        while self._waiting and not self._broken and self.live() - self._leaving() > self.threshold:
            slot = self._next()
            if slot is not None:
                self._send(slot)
                self._settle(self._bound)

    def finish(self) -> None:
        """Let go of everything that is on its way out."""
        self._settle(-1)

    @property
    def swapped_out(self) -> int:
        """Bytes that have left."""
        return sum(transfer.nbytes for transfer in self.transfers if transfer.out)

    @property
    def swapped_in(self) -> int:
        """Bytes that have come back."""
        return sum(transfer.nbytes for transfer in self.transfers if not transfer.out)

    def _leaving(self) -> int:
        return sum(slot.nbytes for slot, _ in self._in_flight.values())

    def _next(self) -> Slot | None:
        if self.settings.order is Order.LARGEST:
            slots = [slot for reference in self._waiting.values() if (slot := reference()) is not None]
            return self._waiting.pop(id(max(slots, key=lambda slot: slot.nbytes)))() if slots else None
        return self._waiting.popitem(last=self.settings.order is Order.NEWEST)[1]()

    def _send(self, slot: Slot) -> None:
        self._waiting.pop(id(slot), None)
        if slot.tensor is not None and slot.intact and slot.parcel is None and not self._broken:
            slot.parcel = self.transport.send(slot.tensor)
            self._in_flight[id(slot)] = (slot, time.perf_counter())

    def _settle(self, bound: float) -> None:
        """Let go of what is away; wait for the oldest while more than ``bound`` bytes are on their way."""
        while self._in_flight:
            slot, start = next(iter(self._in_flight.values()))
            assert slot.parcel is not None
            if not slot.parcel.sent() and self._leaving() <= bound:
                return
            self._in_flight.popitem(last=False)
            before = time.perf_counter()
            try:
                slot.parcel.finish_sending()
            except OSError as error:
                self._give_up(slot, error)
                continue
            finally:
                self.stall_seconds += time.perf_counter() - before
            if slot.intact:
                slot.tensor = None
                slot.sources.clear()
                self._away.append(weakref.ref(slot))
                self.transfers.append(Transfer(key=slot.key, nbytes=slot.nbytes, out=True, start=start, end=time.perf_counter()))
            else:
                slot.parcel = None

    def _give_up(self, slot: Slot, error: OSError) -> None:
        slot.parcel = None
        if not self._broken:
            warnings.warn(f"swapping stopped and values stay in memory, since writing one failed: {error}", RuntimeWarning, stacklevel=2)
        self._broken = True

    def fetch(self, slot: Slot) -> torch.Tensor:
        """The value's bytes on the device; starts fetching the values that backward needs next."""
        self._in_flight.pop(id(slot), None)  # It is needed before it was gone, so it stays.
        start = time.perf_counter()
        self._start_fetch(slot)
        if slot.fetching:
            assert slot.parcel is not None
            slot.parcel.finish_fetch()
            slot.fetching = False
            self.transfers.append(Transfer(key=slot.key, nbytes=slot.nbytes, out=False, start=start, end=time.perf_counter()))
        self.stall_seconds += time.perf_counter() - start
        self._prefetch()
        assert slot.tensor is not None
        return slot.tensor

    def _start_fetch(self, slot: Slot) -> None:
        if slot.tensor is None:
            assert slot.parcel is not None
            device = self.transport.device if hasattr(self.transport, "device") else "cpu"
            slot.tensor = torch.empty(slot.nbytes, dtype=torch.uint8, device=device)
            slot.parcel.start_fetch(slot.tensor)
            slot.fetching = True

    def _prefetch(self) -> None:
        """Backward needs last what left first, so the newest of what is away comes next."""
        while self._away and ((slot := self._away[-1]()) is None or slot.tensor is not None):
            self._away.pop()
        for reference in reversed(self._away[-self.settings.prefetch :] if self.settings.prefetch else ()):
            slot = reference()
            if slot is not None and slot.tensor is None and self.live() + slot.nbytes <= self.threshold:
                self._start_fetch(slot)

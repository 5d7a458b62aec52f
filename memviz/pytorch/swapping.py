"""Saved values that leave the device while they wait: which, when, and when they come back (E6)."""

from __future__ import annotations

import time
import warnings
import weakref
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING

import torch

from memviz.core.plan import Order
from memviz.core.timeline import Transfer
from memviz.pytorch import compat
from memviz.pytorch.saved import Kept
from memviz.pytorch.slots import Slot, Swapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from memviz.core.plan import Swap
    from memviz.pytorch.transport import Transport

IN_FLIGHT = 0.02
"""The part of the limit that may be on its way out at once; the step waits for the rest, so that a peak can be predicted."""

LOOKED_AT = 64
"""How many waiting values are looked at for each tensor saved: those in use are passed over, and there may be thousands."""

LOOKED_AFTER = 0.005
"""Where the device's own allocator is asked, which takes its time: the part of the threshold that may be saved in between."""

PURGED_AT = 1024
"""How many saves may wait to be looked at before those that are done with are let go."""


class Swapper:
    """Decides what leaves and when it is fetched; a transport moves it.

    At each save: while the bytes on the device are above ``occupancy`` of the limit, waiting values leave in ``order``, as far as the
    program is done with them. Memory goes on the calling thread, once the bytes are away. What can't be put away stays.

    Args:
        settings: The thresholds.
        limit: Bytes that count as full.
        transport: Moves the bytes.
        live: Bytes on the device now. Without it they are asked of CUDA's allocator; on the CPU, which has none to ask, they are those
            of the storages that were saved, and ``resident`` others.
        resident: Bytes that never pass by here, such as optimizer state.
    """

    def __init__(
        self, settings: Swap, limit: int, transport: Transport, *, live: Callable[[], int] | None = None, resident: int = 0
    ) -> None:
        self.settings, self.transport = settings, transport
        self.min_bytes = max(1, int(settings.min_bytes))
        self.threshold = settings.occupancy * limit
        self.stall_seconds = 0.0
        self.transfers: list[Transfer] = []
        self._told, self._seen = live, resident
        self._new: list[Swapped] = []
        self._new_bytes = 0
        self._purge_at = PURGED_AT
        self._slack = 0.0
        self._slots: dict[int, weakref.ref[Slot]] = {}
        self._bound = IN_FLIGHT * limit
        self._waiting: OrderedDict[int, weakref.ref[Slot]] = OrderedDict()
        self._urgent: OrderedDict[int, weakref.ref[Slot]] = OrderedDict()
        self._in_flight: OrderedDict[int, tuple[Slot, float]] = OrderedDict()
        self._leaving = 0
        self._away: list[weakref.ref[Slot]] = []
        self._broken = False

    def _live(self) -> int:
        if self._told is not None:
            return self._told()
        device = self.transport.device
        return torch.cuda.memory_allocated(device) if device.type == "cuda" else self._seen

    def pack(self, tensor: torch.Tensor) -> Kept | Swapped:
        """A saved value, which leaves when the device fills up. While it can't be full yet, nothing is looked at."""
        if not compat.plain(tensor):
            return Kept(tensor, plain=False)
        nbytes = tensor.untyped_storage().nbytes()
        if nbytes < self.min_bytes:
            return Kept(tensor, plain=True)
        save = Swapped(tensor, self)
        self._new.append(save)
        self._new_bytes += nbytes
        if self._new_bytes > self._slack:
            self._look()
        elif len(self._new) >= self._purge_at:
            self._purge()
        return save

    def offer(self, tensor: torch.Tensor, name: object = None, *, now: bool = False) -> Kept | Swapped:
        """As ``pack``, of a plain tensor that has a name; it leaves as soon as it can if ``now``. The caller relieves."""
        if tensor.untyped_storage().nbytes() < self.min_bytes:
            return Kept(tensor, plain=True)
        save = Swapped(tensor, self)
        self._place(save, name, now=now)
        return save

    def backward(self) -> None:
        """Backward has begun: it lets go of saves, of which there must be no list."""
        if self._new:
            self._place_new()

    def _look(self) -> None:
        self._place_new()
        self.relieve()
        live = self._live()
        self._slack = max(self.threshold - live, 0) if self.transport.device.type == "cpu" else LOOKED_AFTER * self.threshold

    def _place_new(self) -> None:
        found, self._new, self._new_bytes = self._new, [], 0
        for save in found:
            self._place(save, None)

    def _purge(self) -> None:
        """Let go of saves that nobody else holds any more: those of a forward pass without a backward."""
        references = [weakref.ref(save) for save in self._new]
        self._new.clear()
        self._new = [save for reference in references if (save := reference()) is not None]
        self._purge_at = 2 * len(self._new) + PURGED_AT

    def _place(self, save: Swapped, name: object, *, now: bool = False) -> None:
        storage = save.saved.untyped_storage()
        address, nbytes = storage._cdata, storage.nbytes()
        reference = self._slots.get(address)
        slot = None if reference is None else reference()
        if slot is None:
            slot = Slot(address, nbytes, name, self)
            self._slots[address] = reference = weakref.ref(slot)
            (self._urgent if now else self._waiting)[address] = reference
            self._seen += nbytes
        slot.add(save)

    def forget(self, slot: Slot) -> None:
        """All saves of the storage are done with."""
        if slot.here:
            self._slots.pop(slot.address, None)
            self._waiting.pop(slot.address, None)
            if self._urgent:
                self._urgent.pop(slot.address, None)
            self._seen -= slot.nbytes
        elif slot.tensor is not None:
            self._seen -= slot.nbytes

    def relieve(self, *, looked_at: int = LOOKED_AT) -> None:
        """Send waiting values off the device until it is below the threshold, or none is left that can go."""
        if self._in_flight:
            self._settle(self._bound)
        if self._urgent and not self._broken:
            self._send_from(self._urgent, looked_at, lambda: True)
        if self._too_full() and not self._broken:
            self._send_from(self._waiting, looked_at, self._too_full)

    def _too_full(self) -> bool:
        return self._live() - self._leaving > self.threshold

    def _send_from(self, queue: OrderedDict[int, weakref.ref[Slot]], looked_at: int, wanted: Callable[[], bool]) -> None:
        for address in self._candidates(queue, looked_at):
            slot = queue[address]()
            if not wanted():
                return
            if slot is not None and slot.may_leave():
                del queue[address]
                self._send(slot)
                self._settle(self._bound)
            else:
                queue.move_to_end(address, last=self.settings.order is Order.OLDEST)  # Still in use: its turn comes after the others'.

    def _candidates(self, queue: OrderedDict[int, weakref.ref[Slot]], count: int) -> list[int]:
        if self.settings.order is Order.LARGEST:
            return sorted(queue, key=lambda address: -slot.nbytes if (slot := queue[address]()) is not None else 0)
        return list(islice(queue if self.settings.order is Order.OLDEST else reversed(queue), count))

    def finish(self) -> None:
        """Forward is over: send what still has to go, and let go of everything that is on its way out."""
        if self._new_bytes > self._slack:
            self._place_new()
        self._new.clear()
        self.relieve(looked_at=len(self._waiting) + len(self._urgent))
        self._settle(-1)

    @property
    def swapped_out(self) -> int:
        """Bytes that have left."""
        return sum(transfer.nbytes for transfer in self.transfers if transfer.out)

    @property
    def swapped_in(self) -> int:
        """Bytes that have come back."""
        return sum(transfer.nbytes for transfer in self.transfers if not transfer.out)

    def _send(self, slot: Slot) -> None:
        slot.parcel = self.transport.send(slot.saves()[0].saved.untyped_storage())
        self._in_flight[slot.address] = (slot, time.perf_counter())
        self._leaving += slot.nbytes

    def _settle(self, bound: float) -> None:
        """Let go of what is away; wait for the oldest while more than ``bound`` bytes are on their way."""
        while self._in_flight:
            slot, start = next(iter(self._in_flight.values()))
            assert slot.parcel is not None
            if not slot.parcel.sent() and self._leaving <= bound:
                return
            self._landed(slot)
            before = time.perf_counter()
            try:
                slot.parcel.finish_sending()
            except OSError as error:
                self._give_up(slot, error)
                continue
            end = time.perf_counter()
            self.stall_seconds += end - before
            slot.leave()
            self._slots.pop(slot.address, None)
            self._seen -= slot.nbytes
            self._away.append(weakref.ref(slot))
            self.transfers.append(Transfer(key=str(slot.name), nbytes=slot.nbytes, out=True, start=start, end=end))

    def _landed(self, slot: Slot) -> None:
        if self._in_flight.pop(slot.address, None) is not None:
            self._leaving -= slot.nbytes

    def _give_up(self, slot: Slot, error: OSError) -> None:
        slot.parcel = None
        if not self._broken:
            warnings.warn(f"swapping stopped and values stay in memory, since writing one failed: {error}", RuntimeWarning, stacklevel=2)
        self._broken = True

    def stay(self, slot: Slot) -> None:
        """Backward needs the value while it is here: it does not leave any more."""
        self._waiting.pop(slot.address, None)
        if self._urgent:
            self._urgent.pop(slot.address, None)
        if self._in_flight:
            self._landed(slot)
        if self._away:
            self._prefetch()

    def fetch(self, slot: Slot) -> torch.Tensor:
        """The value's bytes on the device; starts fetching the values that backward needs next."""
        start = time.perf_counter()
        self._start_fetch(slot)
        if slot.arriving:
            assert slot.parcel is not None
            slot.parcel.finish_fetch()
            slot.arriving = False
            self.transfers.append(Transfer(key=str(slot.name), nbytes=slot.nbytes, out=False, start=start, end=time.perf_counter()))
        self.stall_seconds += time.perf_counter() - start
        self._prefetch()
        assert slot.tensor is not None
        return slot.tensor

    def _start_fetch(self, slot: Slot) -> None:
        if slot.tensor is None:
            assert slot.parcel is not None
            slot.tensor = torch.empty(slot.nbytes, dtype=torch.uint8, device=self.transport.device)
            self._seen += slot.nbytes
            slot.parcel.start_fetch(slot.tensor)
            slot.arriving = True

    def _prefetch(self) -> None:
        """Backward needs last what left first, so the newest of what is away comes next."""
        while self._away and ((slot := self._away[-1]()) is None or slot.tensor is not None):
            self._away.pop()
        for reference in reversed(self._away[-self.settings.prefetch :] if self.settings.prefetch else ()):
            slot = reference()
            if slot is not None and slot.tensor is None and self._live() + slot.nbytes <= self.threshold:
                self._start_fetch(slot)

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
from memviz.pytorch.saved import checked
from memviz.pytorch.views import Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from memviz.core.plan import Swap
    from memviz.pytorch.transport import Parcel, Transport

IN_FLIGHT = 0.02
"""The part of the limit that may be on its way out at once; the step waits for the rest, so that a peak can be predicted."""

LOOKED_AT = 64
"""How many waiting values are looked at for each tensor saved: those in use are passed over, and there may be thousands."""


class Slot:
    """One storage, on the device or off it. However often it is saved, it moves once.

    ``saves`` are its saved tensors with their versions while it is here, and windows on its bytes once it has left. It leaves
    only while nobody else holds the storage, and nothing was written since it was saved: so nobody can write to it any more.
    """

    __slots__ = ("__weakref__", "address", "arriving", "name", "nbytes", "parcel", "saves", "swapper", "tensor")

    def __init__(self, address: int, nbytes: int, name: object, swapper: Swapper) -> None:
        self.address, self.nbytes, self.name, self.swapper = address, nbytes, name, swapper
        self.saves: list[tuple[torch.Tensor, int] | Window] = []
        self.parcel: Parcel | None = None
        self.tensor: torch.Tensor | None = None
        """The bytes that came back."""
        self.arriving = False

    @property
    def here(self) -> bool:
        """Whether it has not left yet."""
        return type(self.saves[0]) is tuple

    def add(self, tensor: torch.Tensor) -> Swapped:
        """One more save of the storage."""
        self.saves.append((compat.sibling(tensor), tensor._version))
        return Swapped(self, len(self.saves) - 1)

    def may_leave(self) -> bool:
        """Whether nobody but memviz holds the storage, and no save of it was written to."""
        storage = self.saves[0][0].untyped_storage()  # type: ignore[index]
        alone = compat.num_owners(storage) == len(self.saves) + 1
        return alone and all(tensor._version == version for tensor, version in self.saves)  # type: ignore[misc]

    def leave(self) -> None:
        """Let go of the storage."""
        self.saves = [Window.of(tensor) for tensor, _ in self.saves]  # type: ignore[misc]

    def held(self) -> torch.Tensor | None:
        """A tensor on the value's storage, fetched if it has left; None if it was overwritten."""
        if not self.here:
            return self.swapper.fetch(self)
        tensor, version = self.saves[0]  # type: ignore[misc]
        return tensor if tensor._version == version else None

    def __del__(self) -> None:
        self.swapper.forget(self)
        if self.parcel is not None:
            self.parcel.discard()


class Swapped:
    """A saved tensor whose value may leave the device."""

    __slots__ = ("place", "slot")

    def __init__(self, slot: Slot, place: int) -> None:
        self.slot, self.place = slot, place

    def unpack(self) -> torch.Tensor:
        """The tensor; RuntimeError if it was modified in place since it was saved."""
        saved = self.slot.saves[self.place]
        if type(saved) is tuple:
            self.slot.swapper.stay(self.slot)
            return checked(*saved)
        assert isinstance(saved, Window)
        return saved.on(self.slot.swapper.fetch(self.slot).untyped_storage())


class Swapper:
    """Decides what leaves and when it is fetched; a transport moves it.

    At each save: while ``live()``, the bytes on the device, is above ``occupancy`` of the limit, waiting values leave in ``order``,
    as far as the program is done with them. Memory goes on the calling thread, once the bytes are away. What can't be put away stays.

    Args:
        settings: The thresholds.
        limit: Bytes that count as full.
        transport: Moves the bytes.
        live: Bytes on the device now. Without it they are asked of CUDA's allocator; on the CPU, which has none to ask, they are the
            parameters and values that were saved, and ``resident`` others.
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
        self._leaves: set[int] = set()
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

    def count_leaf(self, tensor: torch.Tensor) -> None:
        """A parameter, or a view of one, was saved: it never moves (E7)."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._leaves:
            self._leaves.add(storage._cdata)
            self._seen += storage.nbytes()

    def offer(self, tensor: torch.Tensor, name: object, *, now: bool = False) -> Swapped | None:
        """Note a saved value; it leaves when the device fills up, or as soon as it can. None where it is too small to move."""
        storage = tensor.untyped_storage()
        nbytes, address = storage.nbytes(), storage._cdata
        if nbytes < self.min_bytes:
            return None
        reference = self._slots.get(address)
        slot = reference() if reference is not None else None
        if slot is None:
            slot = Slot(address, nbytes, name, self)
            reference = self._slots[address] = weakref.ref(slot)
            (self._urgent if now else self._waiting)[address] = reference
            self._seen += nbytes
        return slot.add(tensor)

    def forget(self, slot: Slot) -> None:
        """All saves of the storage are done with."""
        if slot.saves and slot.here:
            for where in (self._slots, self._waiting, self._urgent):
                where.pop(slot.address, None)
        if not slot.saves or slot.here or slot.tensor is not None:
            self._seen -= slot.nbytes

    def relieve(self, *, looked_at: int = LOOKED_AT) -> None:
        """Send waiting values off the device until it is below the threshold, or none is left that can go."""
        if self._in_flight:
            self._settle(self._bound)
        if self._broken:
            return
        if self._urgent:
            self._send_from(self._urgent, looked_at, lambda: True)
        if self._waiting and self._too_full():
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
        """Send what still has to go, and let go of everything that is on its way out."""
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
        tensor, _ = slot.saves[0]  # type: ignore[misc]
        slot.parcel = self.transport.send(tensor.untyped_storage())
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
        self._landed(slot)
        self._waiting.pop(slot.address, None)
        self._urgent.pop(slot.address, None)
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

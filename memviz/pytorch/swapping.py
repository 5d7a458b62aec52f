"""Saved values that leave the device while they wait (E6)."""

from __future__ import annotations

import shutil
import tempfile
import time
import warnings
import weakref
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from memviz.core.plan import Order

if TYPE_CHECKING:
    from collections.abc import Callable

    from memviz.core.plan import Swap


class Slot:
    """One value, on the device or off it. However often it is saved, it moves once."""

    __slots__ = ("__weakref__", "future", "nbytes", "source", "swapper", "tensor", "version", "where")

    def __init__(self, tensor: torch.Tensor, swapper: Swapper) -> None:
        flat = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
        self.tensor: torch.Tensor | None = flat
        self.source: torch.Tensor | None = tensor
        self.version = tensor._version
        self.nbytes = tensor.untyped_storage().nbytes()
        self.swapper = swapper
        self.where: Path | torch.Tensor | None = None
        self.future: Future[None] | None = None

    def storage(self) -> torch.UntypedStorage:
        """The value's storage on the device, fetched if it has left."""
        return self.swapper.fetch(self).untyped_storage()


class Swapper:
    """Decides what leaves, moves it, and brings it back ahead of its use; to host memory, or on CPU to files.

    The policy looks at ``live()``, bytes on the device, whenever a value is saved: while it is above ``occupancy`` of
    the limit, waiting values leave in ``order``. A value that could not be written stays where it is.
    """

    def __init__(self, settings: Swap, limit: int, live: Callable[[], int]) -> None:
        self.settings = settings
        self.threshold = settings.occupancy * limit
        self.live = live
        self.swapped_out = self.swapped_in = 0
        self.stall_seconds = 0.0
        self._waiting: OrderedDict[int, weakref.ref[Slot]] = OrderedDict()
        self._left: list[weakref.ref[Slot]] = []
        self._in_flight: dict[int, Slot] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="memviz-swap")
        self._folder = Path(tempfile.mkdtemp(prefix="memviz-swap-"))
        self._close = weakref.finalize(self, _close, self._pool, self._folder)
        self._count = 0
        self._broken = False

    def add(self, tensor: torch.Tensor, *, now: bool = False) -> Slot:
        """Note a saved value; it leaves when the device fills up, or at once."""
        slot = Slot(tensor, self)
        self._waiting[id(slot)] = weakref.ref(slot)
        if now:
            self._send(slot)
        return slot

    def relieve(self) -> None:
        """Send waiting values off the device until it is below the threshold, or none is left."""
        while not self._broken and self._waiting and self.live() > self.threshold:
            slot = self._next()
            if slot is not None:
                self._send(slot)

    def _next(self) -> Slot | None:
        if self.settings.order is Order.LARGEST:
            alive = [(ref().nbytes, name) for name, ref in self._waiting.items() if ref() is not None]  # type: ignore[union-attr]
            name = max(alive)[1] if alive else next(iter(self._waiting))
            return self._waiting.pop(name)()
        return self._waiting.popitem(last=self.settings.order is Order.NEWEST)[1]()

    def _send(self, slot: Slot) -> None:
        self._waiting.pop(id(slot), None)
        assert slot.tensor is not None
        if slot.source is not None and slot.source._version != slot.version:
            return
        start = time.perf_counter()
        path = self._folder / f"{self._count}.bin"
        self._count += 1
        try:
            self._pool.submit(_write, slot.tensor, path).result()
        except OSError as error:
            self._broken = True
            warnings.warn(f"swapping stopped, values stay in memory: {error}", RuntimeWarning, stacklevel=2)
            return
        finally:
            self.stall_seconds += time.perf_counter() - start
        slot.where = path
        slot.tensor = slot.source = None
        self.swapped_out += slot.nbytes
        self._left.append(weakref.ref(slot))

    def fetch(self, slot: Slot) -> torch.Tensor:
        """The value's bytes on the device; starts fetching the values that backward needs next."""
        start = time.perf_counter()
        self._start_fetch(slot)
        if slot.future is not None:
            slot.future.result()
            slot.future = None
        self.stall_seconds += time.perf_counter() - start
        self._prefetch()
        assert slot.tensor is not None
        return slot.tensor

    def _start_fetch(self, slot: Slot) -> None:
        if slot.tensor is not None:
            return
        assert isinstance(slot.where, Path)
        slot.tensor = torch.empty(slot.nbytes, dtype=torch.uint8)
        slot.future = self._pool.submit(_read, slot.tensor, slot.where)
        self.swapped_in += slot.nbytes

    def _prefetch(self) -> None:
        ahead = self.settings.prefetch
        while self._left and (self._left[-1]() is None or self._left[-1]().tensor is not None) and ahead:  # type: ignore[union-attr]
            self._left.pop()
        for reference in self._left[: -ahead - 1 : -1] if ahead else ():
            slot = reference()
            if slot is not None and self.live() + slot.nbytes <= self.threshold:
                self._start_fetch(slot)

    def close(self) -> None:
        """Stop the thread and remove the files."""
        self._close()


def _write(tensor: torch.Tensor, path: Path) -> None:
    try:
        with path.open("xb") as file:
            file.write(memoryview(tensor.numpy()))
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _read(tensor: torch.Tensor, path: Path) -> None:
    with path.open("rb") as file:
        count = file.readinto(memoryview(tensor.numpy()))
    if count != tensor.numel():
        msg = f"a swapped value came back short: {count} of {tensor.numel()} bytes from {path}"
        raise OSError(msg)
    path.unlink()


def _close(pool: ThreadPoolExecutor, folder: Path) -> None:
    pool.shutdown(wait=True, cancel_futures=True)
    shutil.rmtree(folder, ignore_errors=True)

"""Where swapped bytes wait: pinned host memory for an accelerator, a file for the CPU (E6)."""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
import weakref
import zlib
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Protocol

import torch

AT_ONCE = 256 * 1024
"""Bytes up to which copying to the file's cache takes less time than handing the work to another thread."""

CHECKED = bool(os.environ.get("MEMVIZ_CHECK_SWAPS"))
"""Whether the bytes that come back are checked against a checksum of those that left."""


class Parcel(Protocol):
    """The bytes of one value on their way out, away, or on their way back."""

    def sent(self) -> bool:
        """Whether the device's copy may go without waiting."""
        ...

    def finish_sending(self) -> None:
        """Wait until the device's copy may go; OSError if the bytes could not be put away."""
        ...

    def start_fetch(self, out: torch.Tensor) -> None:
        """Begin to fill a tensor on the device, uint8 of shape (nbytes,)."""
        ...

    def finish_fetch(self) -> None:
        """Make the compute that follows see the bytes; OSError if they did not come back as they left."""
        ...

    def discard(self) -> None:
        """The bytes are not needed any more."""
        ...


class Transport(Protocol):
    """A place for parcels."""

    device: torch.device

    def send(self, storage: torch.UntypedStorage) -> Parcel:
        """Begin to put away the bytes of a storage on the device."""
        ...


class Disk:
    """One file without a name, in which values lie side by side; one background thread moves what is large.

    No folder shows the file, and nobody else can open it: the system frees it however the process ends. It lies where Python's
    ``tempfile`` puts files, so the variable TMPDIR moves it to another disk.
    """

    device = torch.device("cpu")

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # It is closed with the last parcel.
        self.descriptor = file.fileno()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="memviz-swap")
        weakref.finalize(self, _close, self._pool, file)
        self._lock = threading.Lock()
        self._free: dict[int, list[int]] = defaultdict(list)
        self.size = 0

    def send(self, storage: torch.UntypedStorage) -> Parcel:
        """See Transport."""
        return _Extent(self, storage)

    def take(self, nbytes: int) -> int:
        """The offset of a free place in the file: a step's sizes come again in the next, so that the file stops growing."""
        with self._lock:
            free = self._free[nbytes]
            if free:
                return free.pop()
            offset, self.size = self.size, self.size + nbytes
            return offset

    def give_back(self, offset: int, nbytes: int) -> None:
        """The place is free again."""
        with self._lock:
            self._free[nbytes].append(offset)

    def submit(self, work: object, *arguments: object) -> Future[None]:
        """Have the background thread do it."""
        return self._pool.submit(work, *arguments)  # type: ignore[arg-type]


def _close(pool: ThreadPoolExecutor, file: IO[bytes]) -> None:
    pool.shutdown(wait=False, cancel_futures=True)  # Not waiting: this may run on the pool's own thread.
    file.close()  # A move under way holds the Disk, so there is none.


class _Extent:
    """A parcel in the file."""

    __slots__ = ("_checksum", "_disk", "_future", "_nbytes", "_offset")

    def __init__(self, disk: Disk, storage: torch.UntypedStorage) -> None:
        self._disk, self._nbytes = disk, storage.nbytes()
        self._offset = disk.take(self._nbytes)
        self._checksum = zlib.crc32(_bytes(storage)) if CHECKED else None
        self._future: Future[None] | None = self._do(_write, storage)

    def _do(self, move: object, storage: torch.UntypedStorage) -> Future[None] | None:
        """Move now if that is quick; None if it is done. What fails does so when it is waited for."""
        if self._nbytes > AT_ONCE:
            return self._disk.submit(move, self._disk, self._offset, storage)
        try:
            move(self._disk, self._offset, storage)  # type: ignore[operator]
        except OSError as error:
            failed: Future[None] = Future()
            failed.set_exception(error)
            return failed
        return None

    def sent(self) -> bool:
        return self._future is None or self._future.done()

    def finish_sending(self) -> None:
        self._finish()

    def _finish(self) -> None:
        if self._future is not None:
            self._future.result()
            self._future = None

    def start_fetch(self, out: torch.Tensor) -> None:
        self._finish()
        self._future = self._do(_read, out.untyped_storage())
        if self._checksum is not None:
            self._finish()
            if zlib.crc32(_bytes(out.untyped_storage())) != self._checksum:
                msg = f"{self._nbytes} swapped bytes came back changed; the disk or its driver is at fault"
                raise OSError(msg)

    def finish_fetch(self) -> None:
        self._finish()

    def discard(self) -> None:
        if self._future is None or self._future.cancel():
            self._disk.give_back(self._offset, self._nbytes)
        else:
            disk, offset, nbytes = self._disk, self._offset, self._nbytes
            self._future.add_done_callback(lambda _future: disk.give_back(offset, nbytes))


def _bytes(storage: torch.UntypedStorage) -> memoryview:
    """The storage's memory, as it is: no torch op, which a dispatch mode would see."""
    return memoryview((ctypes.c_ubyte * storage.nbytes()).from_address(storage.data_ptr())).cast("B")


def _write(disk: Disk, offset: int, storage: torch.UntypedStorage) -> None:
    left = _bytes(storage)
    while left:
        count = os.pwrite(disk.descriptor, left, offset)
        left, offset = left[count:], offset + count


def _read(disk: Disk, offset: int, storage: torch.UntypedStorage) -> None:
    left = _bytes(storage)
    while left:
        count = os.preadv(disk.descriptor, [left], offset)
        if not count:
            msg = f"a swapped value came back {len(left)} bytes short; something has cut the swap file"
            raise OSError(msg)
        left, offset = left[count:], offset + count


class Host:
    """Pinned host memory, reached over a side stream; buffers are used again. Never synchronizes the compute stream.

    Written after the same policy that the CPU's tests check; not yet run on a GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.free: dict[int, list[torch.Tensor]] = defaultdict(list)

    def send(self, storage: torch.UntypedStorage) -> Parcel:
        """See Transport."""
        return _Pinned(self, torch.empty(0, dtype=torch.uint8, device=self.device).set_(storage))


class _Pinned:
    """A parcel in pinned memory."""

    def __init__(self, host: Host, tensor: torch.Tensor) -> None:
        self._host = host
        free = host.free[tensor.numel()]
        self._buffer = free.pop() if free else torch.empty(tensor.numel(), dtype=torch.uint8, pin_memory=True)
        host.stream.wait_stream(torch.cuda.current_stream(host.device))
        with torch.cuda.stream(host.stream):
            self._buffer.copy_(tensor, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record(host.stream)
        tensor.record_stream(host.stream)

    def sent(self) -> bool:
        return self._event.query()

    def finish_sending(self) -> None:
        """Nothing to wait for: the allocator gives the memory away only after the copy, as ``record_stream`` told it."""

    def start_fetch(self, out: torch.Tensor) -> None:
        self._host.stream.wait_stream(torch.cuda.current_stream(self._host.device))  # ``out`` may have been somebody else's until now.
        with torch.cuda.stream(self._host.stream):
            out.copy_(self._buffer, non_blocking=True)
            self._event.record(self._host.stream)
        out.record_stream(self._host.stream)

    def finish_fetch(self) -> None:
        torch.cuda.current_stream(self._host.device).wait_event(self._event)

    def discard(self) -> None:
        # Used again only by a copy on the same side stream, so in order after the one that still reads it.
        self._host.free[self._buffer.numel()].append(self._buffer)


def transport_for(device: torch.device, target: str) -> Transport:
    """The place that a plan's swap target means on a device; ValueError where it frees nothing or does not exist."""
    if device.type == "cpu":
        if target == "host":
            msg = "swap target 'host' frees nothing on the CPU, whose memory is the host's; use 'disk' or 'auto'"
            raise ValueError(msg)
        return Disk()
    if device.type == "cuda" and target != "disk":
        return Host(device)
    msg = f"there is no swap target {target!r} for {device.type}; use 'auto' on cuda or cpu"
    raise ValueError(msg)

"""Where swapped bytes wait: pinned host memory for an accelerator, files for the CPU (E6)."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import torch


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
        """Make the compute that follows see the bytes."""
        ...

    def discard(self) -> None:
        """The bytes are not needed any more."""
        ...


class Transport(Protocol):
    """A place for parcels."""

    def send(self, tensor: torch.Tensor) -> Parcel:
        """Begin to put away a tensor on the device, uint8 of shape (nbytes,)."""
        ...


class Disk:
    """Files in a private folder, written and read by one background thread; both go when the last user does."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="memviz-swap")
        self.folder = Path(tempfile.mkdtemp(prefix="memviz-swap-"))
        self._close = weakref.finalize(self, _close, self._pool, self.folder)
        self._count = 0

    def send(self, tensor: torch.Tensor) -> _File:
        """See Transport."""
        self._count += 1
        return _File(self, self._pool, self.folder / f"{self._count}.bin", tensor)


def _close(pool: ThreadPoolExecutor, folder: Path) -> None:
    # Not waiting: this may run on the pool's own thread. A write that is under way fails or goes to a removed file.
    pool.shutdown(wait=False, cancel_futures=True)
    shutil.rmtree(folder, ignore_errors=True)


class _File:
    """A parcel in a file."""

    def __init__(self, disk: Disk, pool: ThreadPoolExecutor, path: Path, tensor: torch.Tensor) -> None:
        self._disk = disk  # The folder lives as long as a parcel in it.
        self._pool, self._path = pool, path
        self._nbytes = tensor.numel()
        self._future: Future[None] = pool.submit(_write, tensor, path)

    def sent(self) -> bool:
        return self._future.done()

    def finish_sending(self) -> None:
        self._future.result()

    def start_fetch(self, out: torch.Tensor) -> None:
        self._future = self._pool.submit(_read, out, self._path)

    def finish_fetch(self) -> None:
        self._future.result()

    def discard(self) -> None:
        if not self._future.cancel():
            path = self._path
            self._future.add_done_callback(lambda _future: path.unlink(missing_ok=True))


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


class Host:
    """Pinned host memory, reached over a side stream; buffers are used again. Never synchronizes the compute stream.

    Written after the same policy that the CPU's tests check; not yet run on a GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.free: dict[int, list[torch.Tensor]] = defaultdict(list)

    def send(self, tensor: torch.Tensor) -> _Pinned:
        """See Transport."""
        return _Pinned(self, tensor)


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

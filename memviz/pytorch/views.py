"""A tensor as a window on a storage."""

from __future__ import annotations

from typing import NamedTuple, Self

import torch


class Window(NamedTuple):
    """Where in a storage a tensor's elements lie; in elements, not bytes."""

    dtype: torch.dtype
    size: torch.Size
    stride: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Self:
        """The window that the tensor is."""
        return cls._make((tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset()))

    def is_of(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor shows this window."""
        dtype, size, stride, offset = self
        return tensor.size() == size and tensor.stride() == stride and tensor.dtype is dtype and tensor.storage_offset() == offset

    def through(self, tensor: torch.Tensor) -> torch.Tensor:
        """The window of a tensor's storage: the tensor itself if that is what it shows."""
        return tensor if self.is_of(tensor) else self.on(tensor.untyped_storage())

    def on(self, storage: torch.UntypedStorage) -> torch.Tensor:
        """The tensor that shows the same window of another storage."""
        return torch.empty(0, dtype=self.dtype, device=storage.device).set_(storage, self.offset, self.size, self.stride)


def disjoint(window: Window, tensor: torch.Tensor) -> bool:
    """Whether a tensor on the window's storage surely shares no byte with it; False also where that is not easily seen.

    Seen are columns of one matrix, as ``chunk`` makes them: runs of adjacent elements that repeat at a common stride.

    >>> first, second = torch.zeros(4, 6).chunk(2, dim=1)
    >>> disjoint(Window.of(first), second)
    True
    >>> disjoint(Window.of(first), first[1:])
    False
    """
    if window.dtype != tensor.dtype:
        return False
    one = _columns(window.size, window.stride, window.offset)
    other = _columns(tensor.size(), tensor.stride(), tensor.storage_offset())
    return one is not None and other is not None and one[2] == other[2] and (one[1] <= other[0] or other[1] <= one[0])


def _columns(size: torch.Size, stride: tuple[int, ...], offset: int) -> tuple[int, int, int] | None:
    """Start and end of a run of adjacent elements within a row, and the row's length; None for any other shape."""
    width = 1
    outer = [(count, step) for count, step in zip(size, stride, strict=True) if count > 1]
    while outer and outer[-1][1] == width:
        width *= outer.pop()[0]
    row = min((step for _, step in outer), default=0)
    if not row or any(step % row for _, step in outer) or offset % row + width > row:
        return None
    return offset % row, offset % row + width, row

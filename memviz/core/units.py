"""Bytes and seconds as text, and back."""

import re
from typing import TypeAlias

Bytes: TypeAlias = int | str

_UNITS = {"b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "": 1}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-zA-Z]*)\s*")


def parse_bytes(size: Bytes, *, name: str = "size") -> int:
    """Bytes from a number or from text such as ``"6 GiB"``; ValueError, under the caller's name for it, for anything else.

    >>> parse_bytes("1.5 KiB")
    1536
    """
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    if isinstance(size, float) and size >= 0 and float(size).is_integer():
        return int(size)
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    nbytes = float(match[1]) * _UNITS[match[2].lower()] if match is not None and match[2].lower() in _UNITS else float("inf")
    if nbytes == float("inf"):
        msg = f"{name} is a number of bytes, 0 or more, or text such as '6 GiB' or '512 MiB', not {size!r}"
        raise ValueError(msg)
    return int(nbytes)


def format_bytes(nbytes: float) -> str:
    """Bytes for people, in binary units.

    >>> format_bytes(1536)
    '1.5 KiB'
    """
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def format_seconds(seconds: float) -> str:
    """Seconds for people.

    >>> format_seconds(0.0123)
    '12.3 ms'
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"

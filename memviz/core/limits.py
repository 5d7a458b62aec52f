"""What a limit can be: at least what the parameters alone need."""

from memviz.core.trace import Category, Trace, once_per_trace
from memviz.core.units import Bytes, format_bytes, parse_bytes


def check_limit(limit: Bytes | None, resident: int, *, name: str = "limit") -> int | None:
    """The limit in bytes; ValueError, under the caller's name for it, where it is no size or is below what is always there.

    >>> check_limit("1 KiB", 100)
    1024
    """
    if limit is None:
        return None
    nbytes = parse_bytes(limit, name=name)
    if nbytes < resident:
        msg = (
            f"{name} is {nbytes} bytes ({format_bytes(nbytes)}), but parameters and buffers alone need {resident} "
            f"({format_bytes(resident)}); give more than that, or leave it out"
        )
        raise ValueError(msg)
    return nbytes


@once_per_trace
def resident_bytes(trace: Trace) -> int:
    """Bytes of the parameters and buffers that the step began with."""
    held = {v.storage: v.nbytes for v in trace.values if v.born < 0 and v.category in (Category.PARAMETER, Category.BUFFER)}
    return sum(held.values())

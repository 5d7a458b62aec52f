"""What a device can hold and how fast it moves bytes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The numbers that a prediction needs.

    Attributes:
        name: For people.
        memory: Bytes of device memory.
        swap_out: Bytes a second off the device, ``swap_in`` back onto it.
        flops: Floating-point operations a second.
    """

    name: str
    memory: int
    swap_out: float
    swap_in: float
    flops: float

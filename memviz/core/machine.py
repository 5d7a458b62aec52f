"""What a device can hold and how fast it moves bytes."""

from dataclasses import dataclass

GIB = 2**30


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


def _gpu(name: str, gib: int, *, gigabytes_per_second: float, teraflops: float) -> Machine:
    bandwidth = gigabytes_per_second * 1e9
    return Machine(name=name, memory=gib * GIB, swap_out=bandwidth, swap_in=bandwidth, flops=teraflops * 1e12)


CPU = Machine(name="CPU", memory=16 * GIB, swap_out=0.5e9, swap_in=1e9, flops=1e11)
"""A laptop: swapping goes to a file. The figures are cautious guesses, as a disk's speed is not known before it is tried."""

PRESETS = (
    # Most specific first. Bandwidths are what pinned copies reach over the card's bus; FLOP/s are dense float32 or TF32.
    _gpu("H200", 139, gigabytes_per_second=50, teraflops=400),
    _gpu("H100", 79, gigabytes_per_second=50, teraflops=400),
    _gpu("A100 80GB", 79, gigabytes_per_second=24, teraflops=120),
    _gpu("A100", 39, gigabytes_per_second=24, teraflops=120),
    _gpu("V100", 15, gigabytes_per_second=12, teraflops=14),
    _gpu("L40S", 44, gigabytes_per_second=24, teraflops=90),
    _gpu("L4", 22, gigabytes_per_second=24, teraflops=30),
    _gpu("A10", 22, gigabytes_per_second=24, teraflops=31),
    _gpu("T4", 14, gigabytes_per_second=12, teraflops=8),
    _gpu("RTX 4090", 23, gigabytes_per_second=24, teraflops=82),
    _gpu("RTX 3090", 23, gigabytes_per_second=24, teraflops=35),
)


def machine_for(device: str) -> Machine:
    """The preset for a trace's device name; an unknown accelerator counts as an A100 and anything else as a CPU.

    >>> machine_for("NVIDIA H200").name
    'H200'
    >>> machine_for("cpu").name
    'CPU'
    """
    words = device.upper().replace("-", " ").split()
    for machine in PRESETS:
        if all(word in words for word in machine.name.upper().split()):
            return machine
    accelerated = any(word in device.upper() for word in ("NVIDIA", "CUDA", "TESLA", "GEFORCE", "QUADRO"))
    return next(machine for machine in PRESETS if machine.name == "A100") if accelerated else CPU

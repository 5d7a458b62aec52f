"""What a workload is, before torch is there: a name, its parameters and their settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from memviz.core.parameters import Parameter, Setting

if TYPE_CHECKING:
    from memviz.pytorch.step import TrainStep

DEVICES = ("auto", "cpu", "cuda")
DEVICE = Parameter(name="device", default="auto", help="Where it steps; auto takes CUDA where there is one.", choices=DEVICES)
"""The device as a parameter, for a control and for a request: ``get`` takes it among the settings."""


def closest(wrong: str, right: tuple[str, ...]) -> str:
    """The end of a message about a name that isn't there: the likely one, and all that are."""
    near = get_close_matches(wrong, right, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}There are {', '.join(right)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A training step that can be built anywhere, since it is only words and numbers.

    Attributes:
        name: The factory's name, and the module of ``memviz.workloads.models`` that builds it.
        title: For people.
        parameters: What can be set.
        settings: One for each parameter; those not given are the defaults.
        device: ``auto`` (CUDA where there is one), ``cpu`` or ``cuda``.

    Raises:
        ValueError: A setting that no parameter has, or that its parameter can't have, or an unknown device.
    """

    name: str
    title: str
    parameters: tuple[Parameter, ...]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    device: str = "auto"

    def __post_init__(self) -> None:
        DEVICE.check(self.device)
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in self.settings:
            if name not in known:
                msg = f"{self.name} has no parameter {name!r}; {closest(name, tuple(known))}"
                raise ValueError(msg)
        full = {name: parameter.check(self.settings.get(name, parameter.default)) for name, parameter in known.items()}
        object.__setattr__(self, "settings", full)

    @property
    def heading(self) -> str:
        """The title and what is set otherwise than by default: steps of other settings are other steps."""
        changed = [f"{p.name} {self.settings[p.name]}" for p in self.parameters if self.settings[p.name] != p.default]
        return f"{self.title} ({', '.join(changed)})" if changed else self.title

    def with_settings(self, *, device: str | None = None, **changes: Setting) -> "Workload":
        """The same workload with some settings, or the device, changed."""
        return replace(self, settings={**self.settings, **changes}, device=device or self.device)

    def build(self) -> "TrainStep":
        """The step, with seeded weights and data, on its device; imports torch and leaves its global generator as it was."""
        return import_module("memviz.workloads.models.building").build(self)

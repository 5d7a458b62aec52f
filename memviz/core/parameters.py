"""A workload's parameters, as data that a control can be drawn from."""

from dataclasses import dataclass
from typing import TypeAlias

Setting: TypeAlias = int | float | str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a workload.

    Attributes:
        name: As the factory spells it.
        default: Its value where none is given; its type is the parameter's type.
        help: One sentence.
        minimum: Least value of a number, or None; ``maximum`` likewise.
        choices: The values that a text may have, or ().
    """

    name: str
    default: Setting
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    def check(self, setting: Setting) -> Setting:
        """The setting, if the parameter can have it; ValueError says what it can have."""
        kind = type(self.default)
        if kind is float and isinstance(setting, int) and not isinstance(setting, bool):
            setting = float(setting)
        fits = type(setting) is kind and (not self.choices or setting in self.choices)
        if fits and not isinstance(setting, str | bool):
            fits = (self.minimum is None or setting >= self.minimum) and (self.maximum is None or setting <= self.maximum)
        if not fits:
            msg = f"{self.name} is {self.allowed}, not {setting!r}"
            raise ValueError(msg)
        return setting

    @property
    def allowed(self) -> str:
        """What it can be, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if isinstance(self.default, bool):
            return "true or false"
        words = {int: "a whole number", float: "a number", str: "text"}[type(self.default)]
        bounds = [
            f"at least {self.minimum:g}" if self.minimum is not None else "",
            f"at most {self.maximum:g}" if self.maximum is not None else "",
        ]
        return " ".join([words, " and ".join(filter(None, bounds))]).strip()

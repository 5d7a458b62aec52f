"""Contract dataclasses as plain JSON values and back, read field by field: unknown fields are ignored, known ones checked."""

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
T = TypeVar("T")


class FormatError(ValueError):
    """The file or the data in it is not what memviz writes; the message says where and what would do."""


def to_json(item: object) -> Json:
    """A contract dataclass (or a part of one) as JSON values.

    Infinite and undefined numbers, which JSON lacks, become the texts ``inf``, ``-inf`` and ``nan``.

    >>> from memviz.core.plan import Plan
    >>> to_json(Plan(rules={"*": "keep"}))
    {'rules': [{'pattern': '*', 'action': 'keep'}], 'swap': None, 'label': ''}
    """
    if isinstance(item, Enum):
        return item.value
    if item is None or isinstance(item, bool | int | str):
        return item
    if isinstance(item, float):
        return item if math.isfinite(item) else str(item)
    if isinstance(item, np.ndarray):
        return [to_json(entry) for entry in item.tolist()]
    if is_dataclass(item):
        return {name: to_json(getattr(item, name)) for name, _, _ in _schema(type(item))}
    if isinstance(item, Mapping):
        return {str(to_json(key)): to_json(entry) for key, entry in item.items()}
    if isinstance(item, list | tuple):  # type: ignore[type-arg]  # of anything
        return [to_json(entry) for entry in item]
    msg = f"{type(item).__name__} has no form in a memviz file"
    raise TypeError(msg)


def from_json(kind: type[T], data: object, *, where: str = "") -> T:
    """The contract dataclass that ``to_json`` wrote; FormatError names the first field that does not fit."""
    where = where or kind.__name__.lower()
    if not isinstance(data, dict):
        raise _misfit(where, "an object", data)
    given: dict[str, object] = {}
    for name, hint, field in _schema(kind):
        if name in data:
            given[name] = _read(hint, data[name], f"{where}.{name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            msg = f"{where}.{name} is missing"
            raise FormatError(msg)
    try:
        return kind(**given)
    except FormatError:
        raise
    except ValueError as error:
        msg = f"{where}: {error}"
        raise FormatError(msg) from None


@cache
def _schema(kind: type) -> tuple[tuple[str, Any, Field[Any]], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name], field) for field in fields(kind) if field.init)


def _misfit(where: str, wanted: str, data: object) -> FormatError:
    return FormatError(f"{where} is {str(data)[:40]!r}, but should be {wanted}")


def _read(hint: Any, data: object, where: str) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _read_union(args, data, where)
    if origin is tuple:
        return tuple(_read(args[0], entry, f"{where}[{index}]") for index, entry in enumerate(_list(data, where)))
    if origin is dict:
        if not isinstance(data, dict):
            raise _misfit(where, "an object", data)
        return {_read(args[0], key, where): _read(args[1], entry, f"{where}.{key}") for key, entry in data.items()}
    if origin is np.ndarray:
        return _read_array(get_args(args[1])[0], data, where)
    if origin is Literal:
        return data if data in args else _fail(where, f"one of {', '.join(map(str, args))}", data)
    if is_dataclass(hint):
        return from_json(hint, data, where=where)
    return _read_scalar(hint, data, where)


def _fail(where: str, wanted: str, data: object) -> Any:
    raise _misfit(where, wanted, data)


def _list(data: object, where: str) -> list[object]:
    return data if isinstance(data, list) else _fail(where, "a list", data)


def _read_union(choices: tuple[Any, ...], data: object, where: str) -> object:
    if data is None and type(None) in choices:
        return None
    options = [choice for choice in choices if choice is not type(None)]
    fitting = [choice for choice in options if choice is type(data)]
    return _read(fitting[0] if fitting else options[0], data, where)


def _read_array(dtype: type[np.generic], data: object, where: str) -> np.ndarray[Any, Any]:
    scalar = float if issubclass(dtype, np.floating) else int
    entries = [_read_scalar(scalar, entry, where) for entry in _list(data, where)]
    try:
        return np.array(entries, dtype)
    except OverflowError:
        raise _misfit(where, f"numbers that fit into {np.dtype(dtype)}", data) from None


def _read_scalar(hint: Any, data: object, where: str) -> object:
    if isinstance(hint, type) and issubclass(hint, Enum):
        names = [member.value for member in hint]
        return hint(data) if data in names else _fail(where, f"one of {', '.join(names)}", data)
    if hint is float and (data in ("nan", "inf", "-inf") or (isinstance(data, int) and not isinstance(data, bool))):
        try:
            return float(data)  # type: ignore[arg-type]
        except OverflowError:
            raise _misfit(where, "a number", data) from None
    return data if type(data) is hint else _fail(where, {int: "a whole number", float: "a number", str: "text"}.get(hint, str(hint)), data)

"""The file of a session: a trace, the runs under it, and the failures, as versioned JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from memviz.core.codec import FormatError, from_json, to_json
from memviz.core.failure import Failure
from memviz.core.run import Run
from memviz.core.trace import Trace

if TYPE_CHECKING:
    import os

__all__ = ["FORMAT", "VERSION", "Document", "FormatError", "from_json", "load", "save", "to_json"]

FORMAT = "memviz"
VERSION = 1
"""Raised when a reader of the older version would misread the file; a new field with a default does not need it."""
_OPENING = f'{{"format": "{FORMAT}", "version": '


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a ``*.memviz.json`` file holds: the unplanned step's trace, if it was recorded, and what was run."""

    trace: Trace | None = None
    runs: tuple[Run, ...] = ()
    failures: tuple[Failure, ...] = ()


def dumps(document: Document) -> str:
    """The text of a file that holds the document."""
    return f"{_OPENING}{VERSION}, " + json.dumps({"document": to_json(document)}, allow_nan=False, ensure_ascii=False)[1:]


def loads(text: str, *, name: str = "the text") -> Document:
    """The document in a file's text; FormatError says, under ``name``, what is wrong with it and what would do."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith(_OPENING.rstrip()):
            msg = f"{name} is truncated or damaged: {error}; copy or export it again"
        else:
            msg = f"{name} is not a memviz file: it isn't JSON; load reads what Export report and save write (*.memviz.json)"
        raise FormatError(msg) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        msg = f"{name} is not a memviz file: it is JSON, but not ours; load reads what Export report and save write (*.memviz.json)"
        raise FormatError(msg)
    version = data.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        msg = f"{name} is damaged: its format version is {version!r}"
        raise FormatError(msg)
    if version > VERSION:
        msg = f"{name} was written by a newer memviz (format {version}; this one reads up to {VERSION}); upgrade memviz to open it"
        raise FormatError(msg)
    try:
        return from_json(Document, data.get("document"))
    except FormatError as error:
        msg = f"{name} is damaged: {error}"
        raise FormatError(msg) from None


def save(path: "str | os.PathLike[str]", document: Document) -> Path:
    """Write the document; returns its path. A file that was there stays whole until the new one is complete."""
    target = Path(path)
    text = dumps(document)
    unfinished = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        with unfinished.open("x", encoding="utf-8") as file:
            file.write(text)
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return target


def load(path: "str | os.PathLike[str]") -> Document:
    """Read a ``*.memviz.json`` file back.

    Raises:
        FormatError: The file is not memviz's, is truncated, or is from a newer version.
        FileNotFoundError: There is no such file.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        msg = f"{path} is not a memviz file: it isn't text; load reads what Export report and save write (*.memviz.json)"
        raise FormatError(msg) from None
    return loads(text, name=str(path))

"""The JavaScript of our own widgets, built from extensions/."""

from pathlib import Path

STATIC = Path(__file__).parent / "static"


def script(name: str) -> Path | str:
    """The built file of that name; an empty text where it was not built, as anywidget refuses a missing file on import."""
    path = STATIC / f"{name}.js"
    return path if path.exists() else ""


def check_built(esm: object, name: str) -> None:
    """ImportError, with the command that builds it, for a widget whose JavaScript is missing."""
    if not esm:
        msg = f"{STATIC / name}.js was missing; build it with `npm ci && npm run build` in extensions/, and start the kernel again"
        raise ImportError(msg)

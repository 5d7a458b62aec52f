"""An HTML page that needs nothing but itself: its script, style and charts are inside it."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from html import escape
from importlib.resources import files

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from memviz.figures.theme import DARK, LIGHT

# A browser that honours this can't load or send anything, whatever the scripts in the page try.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "form-action 'none'; base-uri 'none'"
)


def page(title: str, body: Iterable[str]) -> str:
    """The whole document; ``body`` is HTML."""
    own = files("memviz.figures")
    return "\n".join(
        [
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>',
            f"<style>{own.joinpath('page.css').read_text('utf-8')}</style></head><body>",
            *body,
            data_script("dark-colors", json.dumps(dark_colors())),
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{own.joinpath('page.js').read_text('utf-8')}</script>",
            "</body></html>\n",
        ]
    )


def dark_colors() -> dict[str, str]:
    """The dark theme's colour for each of the light theme's: a light figure's JSON with these replaced is the dark figure's."""
    dark = asdict(DARK)
    return {color: dark[role] for role, color in asdict(LIGHT).items()}


def chart(name: str, figure: go.Figure) -> str:
    """A place for the light figure, and its data; ``name`` is unique in the page."""
    return f'<div class="chart" data-figure="{escape(name)}"></div>{data_script(name, figure.to_json())}'


def data_script(name: str, data: str) -> str:
    """JSON for the page's scripts, which no text in it can break out of."""
    inert = data.replace("<", "\\u003c")
    return f'<script type="application/json" id="{escape(name)}">{inert}</script>'


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of text."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def folded(summary: str, *inside: str) -> str:
    """HTML under a line of text that opens it."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(inside)}</details>"

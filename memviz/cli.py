"""The command line: ``memviz demo``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from memviz import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments ask for; its exit code."""
    options = _parser().parse_args(arguments)
    from memviz.demo import demo

    return demo(quick=options.quick, out=options.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memviz", description="See where a training step's memory goes, and what it costs to need less.")
    parser.add_argument("--version", action="version", version=f"memviz {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="demo")
    demo = commands.add_parser("demo", help="step RevNet and a long LSTM for real, under several plans, and write a report")
    demo.add_argument("--quick", action="store_true", help="smaller sizes: at most a minute on two cores")
    demo.add_argument("--out", type=Path, default=Path("memviz-demo"), metavar="DIR", help="where the report goes (default: %(default)s)")
    return parser

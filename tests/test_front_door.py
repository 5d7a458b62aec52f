"""The public names stay what they are, whatever else of the package has been imported."""

import json
import pkgutil
import subprocess
import sys

import pytest

import memviz as mv

LOOK = """
import importlib, json, pkgutil
import memviz as mv
for module in pkgutil.walk_packages(mv.__path__, "memviz."):
    if module.name != "memviz.__main__":
        importlib.import_module(module.name)
print(json.dumps({name: [callable(getattr(mv, name)), type(getattr(mv, name)).__name__] for name in mv.__all__}))
"""


def test_every_public_name_stays_callable_after_every_module_was_imported():
    shown = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True, timeout=120)
    kinds = json.loads(shown.stdout)
    assert kinds.pop("workloads") == [False, "module"]
    assert sorted(kinds) == sorted(set(mv.__all__) - {"workloads"})
    assert all(is_callable for is_callable, _ in kinds.values()), kinds


def test_no_module_has_the_name_of_something_else_that_is_public():
    # Importing memviz.x sets the attribute x of memviz, over what was there.
    modules = {module.name for module in pkgutil.iter_modules(mv.__path__)}
    assert modules & set(mv.__all__) == {"workloads"}


def test_the_names_are_those_that_the_design_promises():
    assert mv.__all__ == sorted(
        ["Plan", "Swap", "TrainStep", "apply", "explore", "load", "plan", "record", "report", "run", "simulate", "workloads"]
    )
    assert dir(mv) == mv.__all__


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(AttributeError, match=r"no attribute 'explroe'; did you mean 'explore'\? It has .*apply, explore"):
        mv.explroe  # noqa: B018

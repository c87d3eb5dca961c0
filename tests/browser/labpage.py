"""A notebook in a real JupyterLab in a real Chromium, for what only a person would see.

JupyterLab itself is asked, through its command registry, to run cells and change its theme, and
its own model is asked whether the kernel is idle; only what is under test is clicked.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import nbformat
from kernel import kernel_environment
from playwright.sync_api import Page, sync_playwright

T = TypeVar("T")

CHROMIUM = os.environ.get("CHROMIUM") or "/usr/bin/chromium"
SECONDS = 30
"""How long anything may take before a test fails."""

_FLAGS = (
    "--no-sandbox",  # containers run tests as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # Else cells that are not in view are not in the page.
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none", "scrollPastEnd": False},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}
_PANEL = "window.jupyterapp?.shell?.currentWidget"
_READY = f"""() => {{
    const kernel = {_PANEL}?.sessionContext?.session?.kernel;
    return Boolean({_PANEL}?.content?.model && {_PANEL}.context.isReady
                   && kernel?.connectionStatus === 'connected' && kernel.info);
}}"""
_RUN_CELL = """(index) => {
    const notebook = jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = index;
    notebook.deselectAll();
    window.axlRunning = true;
    jupyterapp.commands.execute('notebook:run-cell').finally(() => { window.axlRunning = false; });
}"""
# A kernel may say idle while a cell still runs (a widget's message on a subshell): ask both.
_IDLE = f"() => !window.axlRunning && {_PANEL}.sessionContext.session?.kernel?.status === 'idle'"


class LabServer:
    """JupyterLab on a free port, with folders of its own for all that it reads and writes."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.token = secrets.token_hex(16)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        settings = home / "settings"
        settings.mkdir(parents=True)
        (settings / "overrides.json").write_text(json.dumps(_SETTINGS), encoding="utf-8")
        own = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "user-settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        }
        with (home / "server.log").open("w", encoding="utf-8") as self.log:
            self.process = subprocess.Popen(
                self._command(settings),
                cwd=folder,
                env=kernel_environment(home) | {k: str(home / v) for k, v in own.items()},
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a signal to the group reaches only what was started here
            )
        self._wait_until_up(home / "server.log")

    def _command(self, settings: Path) -> list[str]:
        return [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.url.rpartition(':')[2]}",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.root_dir={self.folder}",
            "--ServerApp.terminals_enabled=False",
            "--LabApp.expose_app_in_browser=True",
            f"--LabApp.app_settings_dir={settings}",
            "--LabApp.extension_manager=readonly",
            "--LabApp.news_url=",
        ]

    def _wait_until_up(self, log: Path) -> None:
        end = time.monotonic() + 2 * SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            try:
                self.ask("GET", "status")
            except OSError:
                time.sleep(0.05)
            else:
                return
        self.stop()
        raise RuntimeError(f"JupyterLab did not start:\n{log.read_text('utf-8')[-3000:]}")

    def ask(self, method: str, path: str) -> Any:
        """Jupyter Server's REST API."""
        request = urllib.request.Request(
            f"{self.url}/api/{path}",
            method=method,
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            text = reply.read()
        return json.loads(text) if text else None

    def stop(self) -> None:
        """End the server and the kernels it started."""
        try:
            if self.process.poll() is None:
                self.ask("POST", "shutdown")
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)


class Browser:
    """JupyterLab and Chromium, started together.

    Playwright leaves a running event loop in its thread, where `asyncio.run` then fails for every
    later test; so it has a thread of its own.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        self._thread = ThreadPoolExecutor(1, "browser")
        self._playwright: Any = None
        self.server = LabServer(folder, home)
        try:
            self.do(self._start)
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=list(_FLAGS)
        )
        self._context = self._browser.new_context(viewport={"width": 1100, "height": 900})
        self._context.set_default_timeout(1000 * SECONDS)

    def do(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function in the browser's thread."""
        return self._thread.submit(function, *args, **kwargs).result()

    def open(self, name: str, cells: Sequence[str]) -> NotebookPage:
        """Write a notebook of these cells and open it, alone in the window, with its kernel."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        # Without a kernel's name JupyterLab asks for one.
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, self.server.folder / name)
        return self.do(self._open, name)

    def _open(self, name: str) -> NotebookPage:
        page = self._context.new_page()
        query = f"reset&token={self.server.token}"
        page.goto(f"{self.server.url}/doc/tree/{name}?{query}", wait_until="commit")
        page.wait_for_function(_READY)
        page.wait_for_function(_IDLE)
        return NotebookPage(self, page)

    def stop(self) -> None:
        """End both, whatever state they are in."""
        try:
            if self._playwright is not None:
                self.do(self._browser.close)
                self.do(self._playwright.stop)
        finally:
            self._thread.shutdown()
            self.server.stop()


class NotebookPage:
    """An open notebook, and the kernel behind it."""

    def __init__(self, browser: Browser, page: Page) -> None:
        self._browser = browser
        self._page = page

    def do(self, function: Callable[[Page], T]) -> T:
        """Call a function with the page, in the browser's thread."""
        return self._browser.do(function, self._page)

    def run(self, index: int) -> None:
        """Run a cell to its end."""
        self.do(lambda page: page.evaluate(_RUN_CELL, index))
        self.do(lambda page: page.wait_for_function(_IDLE))

    def output(self, index: int) -> str:
        """The text a person sees below a cell."""
        return self.do(lambda page: self._output(page, index).inner_text())

    def wait_for(self, index: int, text: str) -> None:
        """Wait until a text stands below a cell."""
        self.do(lambda page: self._output(page, index).filter(has_text=text).first.wait_for())

    def _output(self, page: Page, index: int) -> Any:
        cell = f'.jp-Notebook .jp-Cell[data-windowed-list-index="{index}"]'
        return page.locator(f"{cell} .jp-Cell-outputArea")

    def button(self, label: str) -> Callable[[Page], Any]:
        """Finds the button with this label."""
        return lambda page: page.locator("button.jupyter-button").filter(has_text=label)

    def command(self, name: str, **args: Any) -> None:
        """Run one of JupyterLab's commands to its end."""
        script = "([name, args]) => jupyterapp.commands.execute(name, args).then(() => null)"
        self.do(lambda page: page.evaluate(script, [name, args]))

    def theme(self, name: str) -> None:
        """Change JupyterLab's theme, which hides the page for a moment after the command."""
        self.command("apputils:change-theme", theme=name)
        shown = """(name) => document.body.dataset.jpThemeName === name
            && !document.querySelector('#jupyterlab-splash')
            && document.querySelector('.jp-Notebook')?.offsetParent"""
        self.do(lambda page: page.wait_for_function(shown, arg=name))

    def reload(self) -> None:
        """Load the page anew; the kernel goes on."""
        self.do(lambda page: page.reload(wait_until="commit"))
        self.do(lambda page: page.wait_for_function(_READY))

    def picture(self, path: Path) -> Path:
        """A picture of the whole notebook: the window is made as tall as that takes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.do(lambda page: page.set_viewport_size({"width": 1100, "height": 2400}))
        self.do(lambda page: page.screenshot(path=path, animations="disabled"))
        self.do(lambda page: page.set_viewport_size({"width": 1100, "height": 900}))
        return path

    def close(self) -> None:
        """Close the page; its kernel ends with the server."""
        self.do(lambda page: page.close())


def missing() -> str | None:
    """Why there can be no browser test here, if so."""
    if not shutil.which(CHROMIUM):
        return f"no browser at {CHROMIUM}: install Debian's package chromium, or set CHROMIUM"
    return None

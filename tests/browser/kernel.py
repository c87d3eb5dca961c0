"""A real kernel for one test: run a cell, press Stop after a while, and see all it printed."""

from __future__ import annotations

import os
import queue
import time
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_client import KernelManager

ROOT = Path(__file__).parents[2]


@dataclass
class Cell:
    """What came of running a cell."""

    streams: list[tuple[str, str]] = field(default_factory=list)
    """Name and text of what was printed, by this cell or into it."""
    displays: list[dict[str, object]] = field(default_factory=list)
    """Mime bundles, the result's among them."""
    error: str | None = None
    """Name of the exception."""
    seconds: float = 0.0
    stopped_after: float | None = None
    """Seconds from Stop to the end of the cell."""

    @property
    def printed(self) -> str:
        """Standard output."""
        return "".join(text for name, text in self.streams if name == "stdout")

    @property
    def stderr(self) -> str:
        """Standard error, where warnings and logs go."""
        return "".join(text for name, text in self.streams if name == "stderr")

    @property
    def silent(self) -> bool:
        """Nothing was printed, shown or raised."""
        return not (self.streams or self.displays or self.error)


def kernel_environment(folder: Path) -> dict[str, str]:
    """The environment of a kernel that touches nothing of the user's."""
    return os.environ | {
        "IPYTHONDIR": str(folder / "ipython"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }


class Kernel:
    """A fresh kernel; a context manager.

    Args:
        folder: Its working directory.
        home: Where its own files go.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._manager = KernelManager(
            kernel_name="python3", connection_file=str(home / "kernel.json")
        )
        self._manager.start_kernel(cwd=str(folder), env=kernel_environment(home))
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(60)

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()

    def run(self, code: str, *, stop_at: str | None = None, timeout: float = 30) -> Cell:
        """Run a cell to its end.

        Args:
            code: The cell.
            stop_at: Press Stop as soon as a file of this name (a pattern) stands in the folder
                that the kernel works in, and half a second has passed since.
            timeout: Seconds after which the test fails.
        """
        cell = Cell()
        start = time.monotonic()
        asked = self._client.execute(code, allow_stdin=False)
        stopper = None if stop_at is None else _Stop(self._manager, Path(stop_at))
        while True:
            if time.monotonic() - start > timeout:
                raise TimeoutError(f"the cell did not end within {timeout} s: {cell}")
            if stopper is not None:
                stopper.look()
            try:
                message = self._client.get_iopub_msg(timeout=0.05)
            except queue.Empty:
                continue
            if self._take(message, asked, cell):
                break
        cell.seconds = time.monotonic() - start
        if stopper is not None and stopper.pressed is not None:
            cell.stopped_after = time.monotonic() - stopper.pressed
        return cell

    def _take(self, message: dict, asked: str, cell: Cell) -> bool:
        """Note a message; True if it says that the cell has ended."""
        kind, content = message["msg_type"], message["content"]
        mine = message["parent_header"].get("msg_id") == asked
        if kind == "stream":
            cell.streams.append((content["name"], content["text"]))
        elif kind in ("execute_result", "display_data"):
            cell.displays.append(content["data"])
        elif kind == "error":
            cell.error = content["ename"]
        return kind == "status" and content["execution_state"] == "idle" and mine

    def value(self, expression: str) -> str:
        """What a cell prints that prints this expression."""
        cell = self.run(f"print({expression})")
        assert cell.error is None, cell
        return cell.printed.strip()


class _Stop:
    """Presses Stop once, some time after a file has appeared."""

    def __init__(self, manager: KernelManager, sign: Path) -> None:
        self._manager, self._sign = manager, sign
        self._seen: float | None = None
        self.pressed: float | None = None

    def look(self) -> None:
        if self._seen is None and list(self._sign.parent.glob(self._sign.name)):
            self._seen = time.monotonic()
        if self._seen and self.pressed is None and time.monotonic() > self._seen + 0.5:
            self.pressed = time.monotonic()
            self._manager.interrupt_kernel()

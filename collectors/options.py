"""What collecting is asked to do, and where its messages go."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol

from traceview.errors import UsageError

_CHILD = Path(__file__).resolve().parent / "child"


class Console(Protocol):
    """Where the collector's messages go; the command line decides how they look."""

    def say(self, text: str) -> None:
        """One sentence that stays on the screen."""

    def progress(self, text: str | None) -> None:
        """The phase that is running, or None to take it off the screen again."""


class Live:
    """``--live FILE``: JSON lines about what goes on, added to the file; None: nowhere.

    The collector waits for no reader: what a full pipe does not take is left out.
    """

    def __init__(self, path: Path | None) -> None:
        self._fd: int | None = None
        if path is None:
            return
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            fact = f"{path} can't be written ({error.strerror})."
            raise UsageError(fact, "Choose another file with --live.", slug="unwritable") from error
        os.set_blocking(self._fd, False)

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)

    def write(self, event: Mapping[str, Any]) -> None:
        """One line, at once."""
        if self._fd is not None:
            with suppress(OSError):  # the file's disk is full, or the pipe; or its reader is gone
                os.write(self._fd, (json.dumps(event, default=repr) + "\n").encode())


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """One command line, checked.

    ``target`` is a path for a script, a dotted name for a module; ``args`` are the script's own.
    ``python`` None means: find one that has torch. ``steps`` and ``blocks`` None mean: as many as
    the speedup takes to be known. ``compile_target`` is what the collector compiles in a script
    that does not, with ``compile_options`` as torch.compile's arguments. ``after_steps`` pass
    before measuring begins, which takes ``for_steps`` at most. ``timeout_s`` holds for every pass.
    ``bisect_s``: how long what is wrong is followed to its operator; ``record_mb``: size of the
    recording of numbers, with ``compare_outputs``. ``tlparse``: its report is
    written, too.
    ``live``: where JSON lines about what goes on are written meanwhile.
    ``quiet_stdout_to_stderr`` keeps our stdout free for the diagnosis (``--json``).
    """

    kind: Literal["script", "module"]
    target: str
    args: tuple[str, ...] = ()
    python: str | None = None
    nproc: int = 1
    run_to_end: bool = False
    steps: int | None = None
    blocks: int | None = None
    timeout_s: float | None = None
    no_baseline: bool = False
    warm: bool = False
    keep_cache: bool = False
    out: Path | None = None
    force: bool = False
    quiet_stdout_to_stderr: bool = False
    profile: bool = True
    compare_outputs: bool = False
    bisect_s: float = 0.0
    record_mb: int = 0
    tlparse: bool = True
    compile_target: str | None = None
    compile_options: Mapping[str, str | bool] = field(default_factory=dict)
    after_steps: int = 0
    for_steps: int | None = None
    live: Path | None = None

    @property
    def lets_go_on(self) -> bool:
        """Whether the script runs on to its end when enough is measured."""
        return self.run_to_end or self.after_steps > 0 or self.for_steps is not None

    @property
    def stop_after_steps(self) -> int | None:
        """The step at which measuring ends at the latest."""
        return None if self.for_steps is None else self.after_steps + self.for_steps

    @property
    def is_notebook(self) -> bool:
        """Whether the target is a Jupyter notebook, whose cells are run."""
        return self.kind == "script" and self.target.endswith(".ipynb")

    def command(self, python: str) -> list[str]:
        """The user's own command; torchrun takes the same words behind its own."""
        words = [*(["-m"] if self.kind == "module" else []), self.target, *self.args]
        if self.is_notebook:
            words.insert(0, str(_CHILD / "notebook.py"))
        if self.nproc == 1:
            return [python, *words]
        torchrun = ["-m", "torch.distributed.run", "--standalone"]
        return [python, *torchrun, f"--nproc-per-node={self.nproc}", *words]

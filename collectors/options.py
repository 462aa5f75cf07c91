"""What collecting is asked to do, and where its messages go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

_CHILD = Path(__file__).resolve().parent / "child"


class Console(Protocol):
    """Where the collector's messages go; the command line decides how they look."""

    def say(self, text: str) -> None:
        """One sentence that stays on the screen."""

    def progress(self, text: str | None) -> None:
        """The phase that is running, or None to take it off the screen again."""


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """One command line, checked.

    ``target`` is a path for a script, a dotted name for a module; ``args`` are the script's own.
    ``python`` None means: find one that has torch. ``steps`` and ``blocks`` None mean: as many as
    the speedup takes to be known. ``timeout_s`` holds for every pass. ``quiet_stdout_to_stderr``
    keeps our stdout free for the diagnosis (``--json``).
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

"""One run of the target: started as the user would have started it, watched until it has ended.

Signals. The child stays in our process group. In a group of its own it would be in the background,
and its first read from the terminal would stop it (SIGTTIN). So a Ctrl-C reaches both of us at
once, from the kernel; forwarding that one would interrupt the script's own clean-up a second time.
A signal that was sent to us alone (``kill PID``) is forwarded. Only siginfo distinguishes the two,
and in Python only ``sigtimedwait`` has it: so signals are blocked, and taken in the loop.

Processes. The tree that the child started is found in /proc; where there is none, only the process
that we started is known.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from traceview.collectors.compiling import CompileTail
from traceview.collectors.events import EventTail, Story
from traceview.collectors.options import Console, Live
from traceview.collectors.streams import StderrTee
from traceview.errors import TargetUnusable
from traceview.run import Ending

_TICK_S = 0.1
_DRAIN_S = 1.0
_WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH)
_SI_KERNEL = 0x80  # linux/include/uapi/asm-generic/siginfo.h
_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
#: Waits for a line from us. If there is none, we were killed; what ignores its SIGTERM is, too.
_WILL = """
read -r line && exit
sleep "$1"
for process in /proc/[0-9]*; do
    grep -qzxF -e "$2" "$process/environ" 2>/dev/null && kill -9 "${process#/proc/}"
done
"""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds that the child gets before the next, harder step."""

    interrupted_s: float = 30.0
    stopping_s: float = 30.0
    terminated_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Launch:
    """What is run and where its streams go.

    ``stdin`` and ``stdout`` are descriptors, None to inherit ours; ``stderr`` is where the child's
    stderr is passed on to, in addition to ``raw/stderr.txt``.
    """

    command: list[str]
    variables: dict[str, str]
    raw: Path
    timeout_s: float | None = None
    stdin: int | None = None
    stdout: int | None = None
    stderr: int = 2
    patience: Patience = field(default_factory=Patience)
    live: Live = field(default_factory=lambda: Live(None))

    @property
    def compiles(self) -> CompileTail:
        """What reads of its compiles while they go on."""
        caches = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
        found = [Path(self.variables[name]) for name in caches if self.variables.get(name)]
        return CompileTail(self.raw / "structured", found)

    @property
    def marker(self) -> str:
        """An entry of the environment that every process of this pass inherits, and no other."""
        return f"TORCH_TRACE={self.variables.get('TORCH_TRACE')}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended, what the events reported, and notes for the user."""

    ending: Ending
    story: Story
    notes: tuple[str, ...]


def launch(plan: Launch, console: Console) -> Outcome:
    """Run the command to its end; TargetUnusable if it can't even be started."""
    shown = _Shown(console)
    tee = StderrTee(plan.raw / "stderr.txt", plan.stderr, shown.show)
    kills_before = out_of_memory_kills()
    try:
        with SignalDesk() as desk, _ended_with_us(plan):
            watch = _Watch(plan, _start(plan, tee), desk, tee, shown)
            desk.child_started()
            tee.started()
            watch.until_ended()
    finally:
        shown.show(None)
        tee.close()
    story = watch.tail.finish()
    watch.tell()
    notes = []
    if tee.full is not None:
        notes.append(f"The script's stderr was not saved completely ({tee.full}).")
    kills = out_of_memory_kills()
    if kills is not None and kills_before is not None and kills > kills_before:
        notes.append(
            "The kernel's out-of-memory killer ended a process in this control group while the"
            " script ran."
        )
    return Outcome(watch.ending(story), story, tuple(notes))


class _Shown:
    """The progress line: shown once for every new text, cleared before the child's bytes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text: str | None = None

    def show(self, text: str | None = None) -> None:
        if text != self._text:
            self._console.progress(text)
            self._text = text


class _Watch:
    """The loop around one child: bytes, signals, events, and what is due."""

    def __init__(
        self,
        plan: Launch,
        process: subprocess.Popen[bytes],
        desk: SignalDesk,
        tee: StderrTee,
        shown: _Shown,
    ) -> None:
        self._plan, self._process, self._desk = plan, process, desk
        self._tee, self._shown, self.tail = tee, shown, EventTail(plan.raw, plan.compiles)
        self._began, self._began_us = time.monotonic(), time.time() * 1e6
        self._cause: str | None = None
        self._due: list[tuple[float, signal.Signals]] = []
        self._interrupts = 0

    def until_ended(self) -> None:
        """Return when the child has ended and its stderr has been read, a second later at most."""
        while self._process.poll() is None:
            self._tee.pump(_TICK_S)
            self._tick(time.monotonic())
        if any(arrived.number != signal.SIGWINCH for arrived in self._desk.take()):
            self._interrupted()  # and it ended before we looked
        self._tee.drain(_DRAIN_S)
        self._wall_s = time.monotonic() - self._began
        if self._cause == "timeout":
            kill_tree(None, self._plan.marker)  # workers that outlived it

    def tell(self) -> None:
        """Write what is new to ``--live``."""
        for event in self.tail.take_news():
            self._plan.live.write(event)

    def ending(self, story: Story) -> Ending:
        """Our own stop counts as such whatever the exit code: the plan was complete by then."""
        returned = self._process.returncode
        died = returned < 0
        cause = self._cause or ("stopped" if story.stopping else None)
        return Ending(
            kind=cause or ("signal" if died else "exit"),
            code=None if died else returned,
            signal=-returned if died else None,
            wall_s=round(self._wall_s, 3),
        )

    def _tick(self, now: float) -> None:
        for arrived in self._desk.take():
            self._signalled(arrived, now)
        self.tail.poll()
        self.tell()
        patience, timeout_s = self._plan.patience, self._plan.timeout_s
        if self._cause is None and timeout_s is not None and now - self._began >= timeout_s:
            self._end("timeout", now)
        elif self._cause is None and self.tail.story.stopping:
            self._end("stopped", now + patience.stopping_s)
        while self._due and self._due[0][0] <= now:
            self._send(self._due.pop(0)[1])
        if self._tee.at_line_start:
            self._shown.show(self.tail.story.progress(time.time() * 1e6, self._began_us))

    def _signalled(self, arrived: Arrived, now: float) -> None:
        if arrived.number == signal.SIGWINCH:
            self._tee.resize()
            if self._tee.is_terminal:  # the kernel's own SIGWINCH came before the new size
                send(self._process.pid, signal.SIGWINCH)
            return
        # A terminal that goes away tells the leader of its session alone.
        alone = arrived.number == signal.SIGHUP and os.getsid(0) == os.getpid()
        if alone or not arrived.from_terminal:
            send(self._process.pid, arrived.number)
        self._interrupts += 1
        if self._interrupts == 1:
            self._interrupted()
            self._end("interrupted", now + self._plan.patience.interrupted_s)
        elif self._interrupts >= 3:
            self._send(signal.SIGKILL)

    def _interrupted(self) -> None:
        """Also while it ends because the plan is complete: nothing else is to begin after it."""
        if self._cause != "timeout":
            self._cause = "interrupted"

    def _end(self, cause: str, terminate_at: float) -> None:
        """The child has to end: SIGTERM at that time, SIGKILL for the whole tree after it."""
        self._cause = self._cause or cause
        kill_at = terminate_at + self._plan.patience.terminated_s
        self._due = [(terminate_at, signal.SIGTERM), (kill_at, signal.SIGKILL)]

    def _send(self, number: signal.Signals) -> None:
        if number == signal.SIGKILL:
            kill_tree(self._process.pid, self._plan.marker)
        else:
            send(self._process.pid, number)


def _start(plan: Launch, tee: StderrTee) -> subprocess.Popen[bytes]:
    """The child in our own process group (see above), with the descriptors that we got.

    ``close_fds`` stays off: what a shell opened for the script (``<(…)``, ``3>log``) is its own;
    ours are all close-on-exec.
    """
    try:
        return subprocess.Popen(
            plan.command,
            env=plan.variables,
            stdin=plan.stdin,
            stdout=plan.stdout,
            stderr=tee.child_end,
            close_fds=False,
        )
    except OSError as error:
        fact = f"Can't start {plan.command[0]} ({error.strerror})."
        remedy = "Check the interpreter with `traceview doctor`."
        raise TargetUnusable(fact, remedy, slug="no-start") from error


@contextmanager
def _ended_with_us(plan: Launch) -> Iterator[None]:
    """If we are killed in here, all processes of the pass end: a shell sees to it."""
    reader, writer = os.pipe()
    words = [str(round(plan.patience.terminated_s)), plan.marker]
    will = None
    with suppress(OSError):
        will = subprocess.Popen(
            ["/bin/sh", "-c", _WILL, "sh", *words],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    os.close(reader)
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            os.write(writer, b"\n")
        os.close(writer)
        if will is not None:
            will.wait()


@contextmanager
def threads_without_signals() -> Iterator[None]:
    """Threads that are started inside take none of the signals that a ``SignalDesk`` keeps.

    Imports start some (polars has one). They would take what is sent to the script by way of this
    process, and its sender is not known then.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True, slots=True)
class Arrived:
    """A signal; ``from_terminal``: the kernel sent it to the whole foreground group."""

    number: int
    from_terminal: bool


class SignalDesk:
    """While entered, signals are kept for ``take``. Does nothing outside the main thread."""

    def __init__(self) -> None:
        self._seen: deque[Arrived] = deque()
        self._former: dict[signal.Signals, Any] = {}
        self._mask: set[int | signal.Signals] | None = None
        self._active = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> SignalDesk:
        for number in _WATCHED if self._active else ():
            former = signal.getsignal(number)
            if former is signal.SIG_IGN:  # nohup, or a background job: the child ignores it too
                continue
            self._former[number] = former
            signal.signal(number, self._note)
        return self

    def child_started(self) -> None:
        """Block from now on. Not before: the child would have inherited the mask."""
        if self._former:
            self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, set(self._former))

    def take(self) -> list[Arrived]:
        """What came since the last call."""
        while self._mask is not None and (info := signal.sigtimedwait(set(self._former), 0)):
            self._seen.append(Arrived(info.si_signo, info.si_code == _SI_KERNEL))
        taken = list(self._seen)
        self._seen.clear()
        return taken

    def __exit__(self, *_error: object) -> None:
        if self._mask is not None:
            self.take()  # what is pending now came for a run that is over
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        for number, former in self._former.items():
            signal.signal(number, former if former is not None else signal.SIG_DFL)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        # Before the mask was set (or in another thread): the sender is not known, and a Ctrl-C in
        # those few milliseconds is likelier than a lone kill.
        self._seen.append(Arrived(number, number == signal.SIGINT))


def tree(root: int | None, marker: str) -> list[int]:
    """Processes below ``root`` (without it), and those that carry ``marker`` in their environment.

    A worker whose parent died belongs to init by then: its environment still shows whose it was.
    ``marker`` is one ``NAME=VALUE``; ``root`` is None once it has been waited for.
    """
    parents: dict[int, int] = {}
    marked: set[int] = set()
    try:
        entries = [entry for entry in _PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        entries = []
    for entry in entries:
        pid = int(entry.name)
        try:
            stat = (entry / "stat").read_bytes()
            # The command's name stands in brackets and may hold brackets and blanks itself.
            parents[pid] = int(stat[stat.rindex(b")") + 2 :].split()[1])
            if marker.encode() in (entry / "environ").read_bytes().split(b"\0"):
                marked.add(pid)
        except (OSError, ValueError):
            continue  # it ended meanwhile, or is not ours to read
    below: set[int] = set()
    layer = set() if root is None else {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer} - below
        below |= layer
    return sorted((below | marked) - {root, os.getpid()})


def kill_tree(root: int | None, marker: str) -> None:
    """SIGKILL for the process, everything below it and everything marked."""
    for pid in [*tree(root, marker), *([] if root is None else [root])]:
        send(pid, signal.SIGKILL)


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def out_of_memory_kills() -> int | None:
    """Kills by the kernel's out-of-memory killer in our control group; None if not known."""
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for group in groups:
        _, controllers, inside = group.split(":", 2)
        if controllers == "":  # version 2
            counts = Path(_CGROUPS, inside.lstrip("/"), "memory.events")
        elif "memory" in controllers.split(","):
            counts = Path(_CGROUPS, "memory", inside.lstrip("/"), "memory.oom_control")
        else:
            continue
        with suppress(OSError, KeyError, ValueError):
            named = dict(line.split() for line in counts.read_text(encoding="utf-8").splitlines())
            return int(named["oom_kill"])
    return None

"""A program that shows the fault again: from what the run left, tried in new processes.

Best first: the script of ``traceview accuracy --bisect``; torch's fx_graph_runnable of the compile
that failed, made smaller by torch's own minifier; that graph as it is; the user's script. What the
ticket has is what was tried: the text without what is private.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl

from traceview.collectors.child.standalone import DIFFERS, TIMES
from traceview.run import Run
from traceview.tables import Tables
from traceview.torchtext.stages import STAGES

Kind = Literal["bisected", "minified", "graph", "script"]
#: Seconds of one process, and the part of what is left that the minifier may take.
_ONE_S, _MINIFY = 120.0, 0.4
#: Seconds by which a file of a recorded run may be younger than the run's last process.
_SLACK_S = 120.0
_LAST = 1 << 18
#: Signals by which someone ends a process that has no fault.
_ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP)
_SMALL = 4
#: Graphs that are compared where results are wrong.
_GRAPHS = 3
_DROPPED = ("TORCH_TRACE", "TORCH_LOGS", "TORCH_COMPILE_DEBUG", "TRACEVIEW", "_TRACEVIEW")
_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?$")
_INNER = re.compile(
    r"(?P<kind>(?:[a-z_]\w*\.)*[A-Z]?\w*(?:Error|Exception|Failed|Unsupported)): ?(?P<message>.*)"
)
_NOT_WORDS = re.compile(r"\[masked [^\]]*\]|[/~$]\S+|\S*\d\S*|[^A-Za-z_ ]")
#: Settings of our run that torch wrote into its graph; their values were not recorded.
_OUR_SETTINGS = re.compile(
    r"(?m)^os\.environ\['(?:\w+'\] = '…|(?:_TORCH\w+|TORCH_\w+|\w+_CACHE|\w+_CACHE_DIR)'\] = .*)'\n"
)
#: With these a script writes a program down that makes the graph smaller on which a backend failed.
_AFTER_DYNAMO = {"TORCHDYNAMO_REPRO_AFTER": "dynamo", "TORCHDYNAMO_REPRO_LEVEL": "2"}
#: What a backend of the ladder does where it doesn't run.
FAILS = "fails"
#: Runs a script with a backend in place of those that it asks torch.compile for.
_WITH_BACKEND = """
import runpy, sys
import torch

compiled = torch.compile


def forced(model=None, **how):
    how = {{name: value for name, value in how.items() if name not in ("mode", "options")}}
    return compiled(model, **{{**how, "backend": {backend!r}}})


torch.compile = forced
sys.argv[0] = {script!r}
runpy.run_path({script!r}, run_name="__main__")
"""
_GAPS = re.compile(r"\n(?:\s*\n){2,}")
_WORDS, _LINES = 60, 12
_EXPLAINS = ("Explanation:", "Developer debug context:")
_ALIKE = 0.6


class _Ended(NamedTuple):
    """How a process ended, and the end of what it wrote; ``code`` is None if time ended it."""

    code: int | None
    out: str
    err: str


@dataclass(frozen=True)
class Fault:
    """What a program has to show: an exception, its end by a signal, or that results differ.

    ``kind`` is the exception's name, and empty for the last two.
    """

    kind: str
    words: frozenset[str] = frozenset()
    signal: int | None = None

    def shown_by(self, ended: _Ended) -> bool:
        """Whether a process that ended so showed the same."""
        if self.signal:
            return ended.code == -self.signal
        if not self.kind:
            return DIFFERS in ended.out
        other = raised(ended.err)
        if other is None or other.kind != self.kind:
            return False
        both = self.words | other.words
        return not both or len(self.words & other.words) >= _ALIKE * len(both)


#: What a script of ``traceview accuracy`` shows, and torch's graph where it compares results.
DIFFERENCE = Fault("")
INACCURATE = Fault("AccuracyError", frozenset(("Bad", "accuracy", "detected")))


@dataclass
class Reproducer:
    """A program, and in how many of ``times`` new processes it showed the fault.

    ``text``: without what is private; empty where only ``command`` is known. ``printed``: the last
    line of what it wrote. ``before``: whether it shows the fault with the texts that were taken
    out, and doesn't without them.
    """

    kind: Kind
    fault: Fault
    text: str = ""
    raw: str = ""
    #: What follows ``python``; a script's text takes the place of its file.
    command: tuple[str, ...] = ()
    cwd: str = ""
    #: Whether a backend failed on a graph that torch can write down while the script runs.
    of_backend: bool = False
    shown: int = 0
    times: int = 0
    printed: str = ""
    before: bool = False
    #: Kinds that come before it, and why they are not it.
    passed_over: list[tuple[Kind, str]] = field(default_factory=list)


def raised(text: str) -> Fault | None:
    """The innermost exception of the last traceback in ``text``; or of a bare message."""
    begin = text.rfind("Traceback (most recent call last):")
    lines = text[max(begin, 0) :].splitlines()
    found = at = None
    for at, line in enumerate(lines):
        if (begin < 0 or at) and (found := _RAISED.match(line)):
            break
    if found is None or at is None:
        return None
    kind, message = found["kind"], found["message"] or ""
    rest = lines[at + 1 :]
    if message.endswith(" raised:") and rest:  # of a backend
        kind, message = "", rest.pop(0)
    while inner := _INNER.match(message):
        kind, message = inner["kind"], inner["message"]
    if not message.strip() and rest:
        message = rest[0]
    kind = kind or message.partition(":")[0]
    # Dynamo's messages begin with what is common to many faults.
    more = (line for line in rest[:_LINES] if line.lstrip().startswith(_EXPLAINS))
    words = _NOT_WORDS.sub(" ", " ".join((message, *more))).split()[:_WORDS]
    return Fault(kind.rpartition(".")[2], frozenset(words))


def recorded_here(run: Run) -> bool:
    """Whether the folder is as it was recorded, on this machine and for this user.

    When a file last changed can be set by no archive or copy: one that came from elsewhere is
    younger than the run that it records.
    """
    passes = run.manifest.passes
    starts = [record.started_us for record in passes]
    if not starts or any(start is None for start in starts):
        return False
    ends = [(r.started_us or 0.0) / 1e6 + (r.ending.wall_s or 0.0) for r in passes]
    begin, end = (run.manifest.created_us or 0.0) / 1e6 - 1.0, max(ends) + _SLACK_S
    try:
        for path in (run.folder, *run.folder.rglob("raw/**/*"), *run.folder.glob("accuracy/*")):
            about = path.lstat()
            if about.st_uid != os.geteuid():
                return False
            if path.is_file() and not begin <= about.st_ctime <= end:
                return False
    except OSError:
        return False
    return True


def fault_of(run: Run, tables: Tables, error: str) -> Fault | None:
    """What ``error``, the script's last traceback, raised; a signal; else a compile that failed."""
    signals = [record.ending.signal for record in run.manifest.passes]
    if (at := next(filter(None, signals), None)) is not None and at not in _ASKED:
        return Fault("", signal=at)
    failed = tables["compiles"].filter(pl.col("outcome") == "failed")
    rows = failed.select("fail_type", "fail_reason").rows()[-1:]
    return raised(error or "".join(f"{kind}: {reason}" for kind, reason in rows))


def candidates(
    run: Run, tables: Tables, fault: Fault | None, *, differs: bool = False
) -> list[Reproducer]:
    """What may show the fault, best first; ``differs``: compiled results are wrong."""
    found = []
    for path in sorted(run.folder.glob("accuracy/*.py")):
        if not path.with_suffix(".pt").exists() and path.is_file() and not path.is_symlink():
            text = path.read_text("utf-8", "replace")
            found.append(Reproducer("bisected", DIFFERENCE, raw=text))
    graphs = tables["graphs"].filter(pl.col("kind") == "fx_graph_runnable")
    if fault is None:
        # The first are the script's own: those of comparing come after them.
        for text in graphs["text"].unique(maintain_order=True)[: _GRAPHS if differs else 0]:
            compares = _tidy(text).replace("accuracy=False", "accuracy='accuracy'")
            found.append(Reproducer("graph", INACCURATE, raw=compares))
        return found
    failed = tables["compiles"].filter(pl.col("outcome") == "failed").select("compile_id")
    of_failed = graphs.join(failed, on="compile_id", how="semi")
    # Where none failed, it is most likely the code of the last one that did.
    texts = (graphs if of_failed.is_empty() else of_failed)["text"]
    found += [Reproducer("graph", fault, raw=_tidy(text)) for text in texts[-1:]]
    manifest = run.manifest
    if not manifest.target or manifest.nproc > 1 or manifest.target[0].endswith(".ipynb"):
        return found
    command = (*(("-m",) if manifest.target_kind == "module" else ()), *manifest.target)
    script = Reproducer("script", fault, command=command, cwd=manifest.cwd)
    by_backend = tables["compiles"].filter(pl.col("fail_type") == "BackendCompilerFailed")
    script.of_backend = of_failed.is_empty() and not by_backend.is_empty()
    if manifest.target_kind == "script":
        file = str(Path(manifest.cwd, manifest.target[0]))
        copies = tables["sources"].filter(pl.col("file").is_in([file, os.path.realpath(file)]))
        for name in copies["copy"].to_list()[:1]:
            path = run.folder / name
            if path.resolve().is_relative_to(run.folder.resolve()) and path.is_file():
                script.raw = path.read_text("utf-8", "replace")
    return [*found, script]


class Trying:
    """Candidates in new processes of ``python``, until one shows its fault or time is up."""

    def __init__(self, python: str, seconds: float) -> None:
        self._python = python
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._until - time.monotonic()

    def best(
        self, those: list[Reproducer], private: Callable[[Reproducer, str], str]
    ) -> Reproducer | None:
        """The first that shows the fault, else the one that would with its private texts."""
        with _scratch() as self._scratch:
            return self._best(those, private)

    def ladder(self, script: Reproducer) -> dict[str, str]:
        """Each backend of torch's ladder, and what the script does with it in place of its own."""
        found: dict[str, str] = {}
        if not script.raw:
            return found
        name = Path(script.command[0]).name
        with _scratch() as self._scratch:
            (self._scratch / name).write_text(script.raw, "utf-8", "surrogateescape")
            for backend in STAGES:
                limit = min(_ONE_S, self.left)
                text = _WITH_BACKEND.format(backend=backend, script=str(self._scratch / name))
                command = ("forced.py", *script.command[1:])
                forced = Reproducer("script", script.fault, command=command, cwd=script.cwd)
                ended = self._start(forced, text, limit) if limit > 1.0 else None
                if ended is None or ended.code is None:
                    break
                if script.fault.shown_by(ended):
                    found[backend] = FAILS
                elif ended.code:
                    last = _last_error(ended.err) or f"exit code {ended.code}"
                    found[backend] = f"{FAILS} in another way: {last}"
                else:
                    found[backend] = "runs"
        return found

    def _best(
        self, those: list[Reproducer], private: Callable[[Reproducer, str], str]
    ) -> Reproducer | None:
        passed_over: list[tuple[Kind, str]] = []
        second: Reproducer | None = None
        for each in those:
            for one in self._smaller_first(each):
                one.text = private(one, one.raw)
                self._try(one, one.text or one.raw, TIMES)
                if not one.shown and one.text not in ("", one.raw):
                    bare = Reproducer(one.kind, one.fault, command=one.command, cwd=one.cwd)
                    self._try(bare, one.raw, 1)
                    one.before = bare.shown == 1
                if one.shown:
                    one.passed_over = passed_over
                    return one
                if one.before and second is None:
                    second = one
                passed_over.append((one.kind, self._why(one)))
        if second is not None:
            second.passed_over = [row for row in passed_over if row[0] != second.kind]
            return second
        if not those:
            return None
        last = those[-1]
        last.passed_over = [row for row in passed_over if row[0] != last.kind]
        return last

    def _smaller_first(self, one: Reproducer) -> Iterator[Reproducer]:
        smaller = ""
        if one.kind == "graph" and one.raw.count("torch.ops.") > _SMALL:
            (self._scratch / "graph.py").write_text(one.raw, encoding="utf-8")
            how = ["--no-isolate", "--check-str", one.fault.kind]
            if one.fault.signal:  # which would end the minifier itself
                how = ["--isolate"]
            elif one.fault == INACCURATE:
                how = ["--no-isolate", "--accuracy"]
            smaller = self._minified("graph.py", "minify", *how)
        elif one.of_backend:
            self._start(one, one.raw, _MINIFY * self.left, **_AFTER_DYNAMO)
            for launcher in self._scratch.rglob("minifier_launcher.py"):
                smaller = self._minified(str(launcher))
        if smaller:
            yield Reproducer("minified", one.fault, raw=smaller)
        yield one

    def _why(self, one: Reproducer) -> str:
        if not one.times:
            return "there was no time left to run it"
        if one.before:
            return "it shows the fault only with the strings that were taken out"
        return f"it ended with `{one.printed}`" if one.printed else "it ended without the error"

    def _minified(self, *command: str) -> str:
        """What torch's minifier made within its time; empty if nothing."""
        folder = self._scratch
        _run([self._python, *command], folder, folder, _MINIFY * self.left)
        made = folder / "repro.py"
        text = made.read_text("utf-8", "replace") if made.exists() else ""
        # Our name for the scratch folder means nothing to anyone else.
        return _tidy(re.sub(r"save_dir='[^']*'", "save_dir=None", text))

    def _try(self, one: Reproducer, text: str, times: int) -> None:
        """Run it ``times`` times; once is enough if it doesn't show the fault then."""
        for _ in range(times):
            limit = min(_ONE_S, self.left)
            ended = self._start(one, text, limit) if limit > 1.0 else None
            if ended is None or (ended.code is None and limit < _ONE_S):
                return  # the time for all of them is up
            one.times += 1
            lines = (ended.out if one.fault == DIFFERENCE else ended.err).strip().splitlines()
            one.printed = _last_error(ended.err) or (lines[-1][:300] if lines else "")
            if ended.code is None:
                one.printed = f"nothing more after {_ONE_S:.0f} s"
            if ended.code is None or not one.fault.shown_by(ended):
                return
            one.shown += 1

    def _start(self, one: Reproducer, text: str, seconds: float, **env: str) -> _Ended:
        """One process of it, with ``text`` in place of its file."""
        folder = self._scratch
        cwd, command = folder, [self._python, *one.command]
        if text:
            name = Path(one.command[0] if one.command else "reproducer.py").name
            (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")
            command = [self._python, str(folder / name), *one.command[1:]]
        if one.command:
            beside = (str(Path(one.cwd, one.command[0]).parent), os.environ.get("PYTHONPATH"))
            env["PYTHONPATH"] = os.pathsep.join(filter(None, beside))
            cwd = Path(one.cwd) if Path(one.cwd).is_dir() else cwd
        return _run(command, cwd, folder, seconds, **env)


def _tidy(text: str) -> str:
    """torch's text without the settings of our run, and with smaller gaps."""
    return _GAPS.sub("\n\n", _OUR_SETTINGS.sub("", text)).strip("\n")


def _last_error(err: str) -> str:
    """The line of the exception that a process ended with."""
    begin = err.rfind("Traceback (most recent call last):")
    lines = err[begin:].splitlines()[1:] if begin >= 0 else []
    return next((line[:300] for line in lines if _RAISED.match(line)), "")


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="traceview-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], cwd: Path, scratch: Path, seconds: float, **more: str) -> _Ended:
    """A process, which ends with its time, and with it all that it started."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    # Each compiles by itself, but headers need to be precompiled only once.
    env["TORCHINDUCTOR_FX_GRAPH_CACHE"] = env["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"
    env["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "cache")
    env["TORCH_COMPILE_DEBUG_DIR"] = str(scratch / "debug")
    env["TMPDIR"] = str(scratch)
    env |= more
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:  # the interpreter is gone
            return _Ended(1, "", str(error))
        code = None
        try:
            code = process.wait(max(0.1, seconds))
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        texts = []
        for file in (out, err):
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LAST))
            texts.append(file.read().decode("utf-8", "replace"))
    return _Ended(code, *texts)

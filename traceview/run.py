"""The run folder: where collecting and analysing meet, and the only place where they do.

    RUN/
      run.json              manifest, rewritten atomically whenever a pass begins or ends
      raw/PASS/             PASS is cold, warm or baseline (see docs/run-folder.md)
        events-PID.jsonl    the collector's own events, an object a line, flushed as they happen
        structured/         TORCH_TRACE
        torch_logs.txt      TORCH_LOGS_OUT
        stderr.txt          what the script wrote to stderr, as bytes
        profile/            STANCE-PID.json.gz, profiler traces
      raw/sources/          copies of the user's files that the run names
      cache/                private Inductor and Triton caches (removed unless --keep-cache)
      tables/               NAME.parquet
      tlparse/PASS/…        tlparse's own report
      diagnosis.json, report.html
      trials.json, .html, .md, .csv
      rollout.json, .html, .md
      ticket.md, ticket.zip

The format is described in docs/run-folder.md. Nothing here needs torch or polars.

Every file of ours is written by ``beside`` or ``write_whole``: whole or not at all, for its owner
alone. Logs that grow (events, stderr) are the exception.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from traceview.errors import NothingToAnalyse, RunFolderError
from traceview.json_errors import NOT_JSON, in_utf8

FORMAT = 1
#: Milliseconds of an iteration of the script's loops, in the raw folder of a process apart.
TICKS = "ticks.json"
MANIFEST = "run.json"
#: Modes: of the run folder, of the files in it, and of files that the user named elsewhere.
PRIVATE, OWNERS, USERS = 0o700, 0o600, 0o666
PassName = Literal["cold", "warm", "baseline", "logs"]


@dataclass(slots=True)
class Ending:
    """How a process ended: exit, signal, timeout, stopped (by our plan), interrupted, unknown."""

    kind: str = "unknown"
    code: int | None = None
    signal: int | None = None
    wall_s: float | None = None

    @property
    def is_well(self) -> bool:
        """Whether it ended by itself, or because the plan was complete."""
        return self.kind == "stopped" or (self.kind, self.code) == ("exit", 0)


@dataclass(slots=True)
class PassRecord:
    """One run of the target: cold (measured), warm (same cache again), baseline (all eager)."""

    name: str
    raw: str
    started_us: float | None = None
    command: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    ending: Ending = field(default_factory=Ending)
    why: str | None = None


@dataclass(slots=True)
class Manifest:
    """What ``run.json`` holds."""

    format: int = FORMAT
    traceview: str = ""
    created_us: float | None = None
    target: list[str] = field(default_factory=list)
    target_kind: str = "script"
    cwd: str = ""
    python: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    nproc: int = 1
    passes: list[PassRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Run:
    """An opened run folder."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def create(cls, folder: Path, manifest: Manifest) -> Run:
        """Make the folder and its parents, write the manifest; RunFolderError if that fails."""
        run = cls(folder, manifest)
        try:
            folder.mkdir(PRIVATE, parents=True, exist_ok=True)
            with suppress(OSError):  # one that was there already; it may be another user's
                folder.chmod(PRIVATE)
            (folder / "raw" / "sources").mkdir(parents=True, exist_ok=True)
            # A run inside a repository is not committed by accident.
            if not os.path.lexists(ignored := folder / ".gitignore"):
                write_whole(ignored, "*\n")
        except OSError as error:
            raise _unwritable(folder, error) from error
        run.save()
        return run

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Open a folder that ``create`` made; NothingToAnalyse if it is none."""
        path = folder / MANIFEST
        try:
            manifest = msgspec.json.decode(in_utf8(path.read_bytes()), type=Manifest)
            for record in manifest.passes:
                if not (folder / record.raw).resolve().is_relative_to(folder.resolve()):
                    raise ValueError(f"it names {record.raw!r}, which is outside of the folder")
            return cls(folder, manifest)
        except FileNotFoundError as error:
            fact = f"{folder} is not a run folder: it has no {MANIFEST}."
            remedy = "Name the folder that `traceview diagnose` printed."
            raise NothingToAnalyse(fact, remedy, slug="not-a-run") from error
        except (OSError, *NOT_JSON) as error:
            fact = f"{path} can't be read as a run's manifest ({error})."
            remedy = "Run `traceview diagnose` again; its raw logs can still be read separately."
            raise NothingToAnalyse(fact, remedy, slug="bad-manifest") from error

    def save(self) -> None:
        """Write the manifest."""
        try:
            text = json.dumps(asdict(self.manifest), indent=1) + "\n"
            write_whole(self.folder / MANIFEST, text)
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def raw(self, record: PassRecord) -> Path:
        """The raw folder of one pass."""
        return self.folder / record.raw

    def relative(self, path: Path) -> str:
        """``path`` as tables name it: relative to the run folder, with forward slashes."""
        return path.relative_to(self.folder).as_posix()

    @property
    def tables_folder(self) -> Path:
        return self.folder / "tables"


@contextmanager
def beside(path: Path, mode: int = OWNERS) -> Iterator[IO[bytes]]:
    """A file that becomes ``path`` when the block ends: whole, or not at all.

    What was there stays as it is until then. One that the user named (``USERS``) may be a link, or
    a device or pipe, which is written to as the block goes on.
    """
    if mode == USERS:
        special = path.exists() and not (path.is_file() or path.is_dir())
        if special or path.is_relative_to("/dev") or path.is_relative_to("/proc"):
            with path.open("wb") as file:
                yield file
            return
        path = path.resolve()
    scratch = path.with_name(f".{path.name[:50]}.{os.getpid()}.part")
    try:
        scratch.unlink(missing_ok=True)  # of a process that was killed, and had our number
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(scratch, flags, mode), "w+b") as file:
            yield file
        scratch.replace(path)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise


def write_whole(path: Path, data: bytes | memoryview | str, mode: int = OWNERS) -> None:
    """``data`` as the file ``path``: all of it, or what was there before; else an OSError."""
    with beside(path, mode) as file:  # a name of a file may be no UTF-8
        file.write(data.encode(errors="replace") if isinstance(data, str) else data)


def owners(path: Path) -> IO[bytes]:
    """A file for what a script prints, which is written as it comes."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, OWNERS), "wb")


def _unwritable(folder: Path, error: OSError) -> RunFolderError:
    fact = f"The run folder {folder} can't be written ({error.strerror or error})."
    return RunFolderError(fact, "Name another one with -o DIR.", slug="unwritable")

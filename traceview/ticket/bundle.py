"""``ticket.md`` and ``ticket.zip`` of a run: all texts made private, then searched again."""

from __future__ import annotations

import contextlib
import getpass
import gzip
import io
import json
import os
import platform
import re
import stat
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from traceview.collectors.child.secrets import is_secret
from traceview.contracts import text_of
from traceview.diagnosis import Diagnosis, from_json, to_json
from traceview.errors import NothingToAnalyse, RunFolderError
from traceview.json_errors import NOT_JSON
from traceview.run import MANIFEST, Run, beside
from traceview.tables import Tables
from traceview.ticket.form import REPRODUCER, TRACKERS, Facts, Form, render
from traceview.ticket.private import HARMLESS_VARIABLES, is_distinct
from traceview.ticket.redaction import Level, Redaction, latin
from traceview.ticket.reproducer import Reproducer, Trying, candidates, fault_of
from traceview.ticket.source import hide_source, without_strings
from traceview.trials.model import RESULTS, Results
from traceview.trials.model import from_json as trials_from_json
from traceview.trials.model import to_json as trials_to_json

PAGE, ARCHIVE = "ticket.md", "ticket.zip"
#: How our own earlier tickets are known.
MARK = "<!-- traceview ticket -->"
_PIECE, _MOST = 1 << 22, 1 << 24
_RECORDS = (MANIFEST, RESULTS, "rollout.json")
_TEXTS = frozenset((".json", ".jsonl", ".log", ".txt", ".py", ".diff", ".md", ".csv", ""))
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*t?")
_ENV_SECONDS = 60
#: Characters of stderr where it has no traceback.
_LAST = 4000
_FAST = 3  # of zlib: logs pack to 6 % with it, in a third of the time that 9 takes


@dataclass(frozen=True)
class Written:
    """What was written, and what was taken out: kind, how often, in how many files."""

    page: Path
    archive: Path
    bytes: int
    replaced: list[tuple[str, int, int]]


@dataclass(frozen=True)
class _File:
    """One text of the bundle: a file's, or ``text`` where there is no path."""

    name: str
    path: Path | None = None
    text: str = ""

    def pieces(self) -> Iterator[str]:
        """Whole lines, as Latin-1."""
        if self.path is None:
            yield from pieces(io.BytesIO(self.text.encode("utf-8", "surrogateescape")))
            return
        with _opened(self.path) as file:
            yield from pieces(_unpacked(file, self.name))


def write_ticket(
    run: Run,
    tables: Tables,
    diagnosis: Diagnosis,
    folder: Path,
    *,
    level: Level,
    form: Form,
    versions: tuple[str, str] | None,
    reproduce_s: float,
    page_of: Callable[[Diagnosis, Results | None], str],
) -> Written:
    """Write both files into ``folder``; RunFolderError if one is not ours or can't be written.

    ``versions`` is a module that prints them and what it printed. ``reproduce_s``: seconds in which
    a reproducer is looked for; with 0 nothing of the run is run. ``page_of`` makes the report of
    the private diagnosis. Nothing is left where a value that was to be taken out is found again.
    """
    page, archive = folder / PAGE, folder / ARCHIVE
    _check_ours(page, archive)
    redaction = Redaction(level)
    files, left_out = _files(run, tables, redaction)
    _know(redaction, run)
    command = [*(("-m",) if run.manifest.target_kind == "module" else ()), *run.manifest.target]
    facts = Facts(diagnosis, _results(run), form, level, command, left_out, run.manifest.nproc)
    facts.error = _traceback(run) if diagnosis.verdict.outcome == "failed" else ""
    fault = fault_of(run, tables, facts.error)
    differs = any(each.differences for each in diagnosis.outputs)
    found = candidates(run, tables, fault, differs=differs)
    facts.versions_by, facts.versions = versions or (facts.versions_by, "")
    for file in files:
        for piece in file.pieces():
            redaction.learn(piece)
    _make_private(facts, redaction)

    def private(each: Reproducer, text: str) -> str:
        if each.kind == "script" and level != "none":
            text = "" if level == "strict" else without_strings(text, redaction)
        return redaction.in_text(text)

    if reproduce_s:
        tried = Trying(run.manifest.python, reproduce_s)
        facts.reproducer = tried.best(found, private)
        if facts.error and facts.results is None and found:
            facts.ladder = tried.ladder(found[-1])
    elif found:
        facts.reproducer = found[0]
        facts.reproducer.text = private(found[0], found[0].raw)
    files.append(_File("diagnosis.json", text=text_of(to_json(facts.diagnosis)) + "\n"))
    files.append(_File("report.html", text=page_of(facts.diagnosis, facts.results)))
    program = facts.reproducer.text if facts.reproducer else ""
    extra = {REPRODUCER: program, "collect_env.txt": facts.versions}
    files += [_File(name, text=text + "\n") for name, text in extra.items() if text]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with beside(page) as text, beside(archive) as packed:
            text.write(_pack(packed, files, facts, redaction))
            _search(packed, redaction)
            size = packed.seek(0, os.SEEK_END)
    except OSError as error:
        fact = f"The ticket can't be written to {folder} ({error.strerror or error})."
        raise RunFolderError(fact, "Name another folder with -o DIR.", slug="unwritable") from error
    return Written(page, archive, size, redaction.table())


def collected_versions(run: Run, form: Form) -> tuple[str, str] | None:
    """A module that the form names for this, and what the run's interpreter prints with it."""
    python = Path(run.manifest.python)
    # A run folder may be someone else's: it names an interpreter, and has none of its own.
    within = any(each.is_relative_to(run.folder.resolve()) for each in (python, python.resolve()))
    fits = python.is_absolute() and not within and _PYTHON.fullmatch(python.name)
    if not fits or not os.access(python, os.X_OK):
        return None
    for module in TRACKERS[form].versions:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                [python, "-m", *module.split()],
                cwd=python.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_ENV_SECONDS,
                check=True,
            )
            if text := done.stdout.decode("utf-8", "replace").strip():
                return module, text
    return None


def pieces(stream: IO[bytes]) -> Iterator[str]:
    """Whole lines of a text, some MB at a time; of a damaged packed one what comes before that."""
    # One buffer for all pieces: the memory of a new one costs as much as reading it.
    data = bytearray(_MOST + _PIECE)
    there = _read(stream, data, 0)
    if data[:2] in _UTF16:
        rest = bytes(data[:there])
        while more := _read(stream, data, 0):
            rest += data[:more]
        yield latin(rest.decode("utf-16", "replace"))
        return
    more = there
    while more:
        # It can be cut after a line, and not within a private key.
        end = data.rfind(b"\n", 0, there) + 1
        key = data.rfind(b"-----BEGIN ", max(0, end - 20_000), end)
        if key > 0 and data.find(b"-----END ", key, end) < 0 and there < _MOST:
            end = data.rfind(b"\n", 0, key) + 1
        if not end and there >= _MOST:
            end = max(data.rfind(b", ", 0, there), data.rfind(b" ", 0, there)) + 1 or there
        if end:
            with memoryview(data) as view:
                text = str(view[:end], "latin-1")
                view[: there - end] = view[end:there]
            there -= end
            yield text
        more = _read(stream, data, there)
        there += more
    if there:
        yield data[:there].decode("latin-1")


def _read(stream: Any, data: bytearray, begin: int) -> int:  # noqa: ANN401 - files, members, …
    """Bytes that were read into ``data``, from ``begin`` on."""
    size = 0
    with contextlib.suppress(EOFError, OSError, zlib.error), memoryview(data) as view:
        while size < _PIECE and (more := stream.readinto1(view[begin + size : begin + _PIECE])):
            size += more
    return size


def _files(
    run: Run, tables: Tables, redaction: Redaction
) -> tuple[list[_File], list[tuple[str, str]]]:
    """The texts of the run folder; and what is not one, with the reason."""
    found: list[_File] = []
    left_out: list[tuple[str, str]] = []
    rows = tables["sources"].select("copy", "file").drop_nulls().iter_rows()
    cwd, paths = run.manifest.cwd, {copy: Path(file) for copy, file in rows}
    # The path of a source below the folder in which the run was; else what is left of it.
    inside = {
        copy: str(path.relative_to(cwd)) if path.is_relative_to(cwd) else "/".join(path.parts[-2:])
        for copy, path in paths.items()
    }

    def walk(folder: Path, name: str) -> None:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            left_out.append((name, error.strerror or str(error)))
            return
        for entry in entries:
            inner = f"{name}/{entry.name}"
            if entry.is_symlink():
                left_out.append((inner, "a symbolic link"))
            elif entry.is_dir(follow_symlinks=False):
                walk(folder / entry.name, inner)
            else:
                take(folder / entry.name, inner)

    def take(path: Path, name: str) -> None:
        why = _unfit(path, name)
        if why is not None:
            left_out.append((name, why))
        elif not name.startswith("raw/sources/") or redaction.level == "none":
            found.append(_File(name, path))
        else:
            with _opened(path) as file:
                source = file.read().decode("utf-8", "surrogateescape")
            redaction.learn(latin(source))
            if redaction.level == "strict":
                hide_source(path.name, source, redaction, inside.get(name, ""))
                left_out.append((name, "source is left out with --redact strict"))
            else:
                found.append(_File(name, text=without_strings(source, redaction)))

    for name in _RECORDS:
        if (run.folder / name).exists():
            take(run.folder / name, name)
    raw = run.folder / "raw"
    if raw.is_symlink():
        left_out.append(("raw", "a symbolic link"))
    elif raw.is_dir():
        walk(raw, "raw")
    return found, left_out


def _unfit(path: Path, name: str) -> str | None:
    """Why a file can't be in the bundle."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return "a symbolic link"
        if not stat.S_ISREG(mode):
            return "not a file"
        if not os.access(path, os.R_OK):
            return "can't be read"
        stem = name.removesuffix(".gz")
        if Path(stem).suffix.lower() in _TEXTS:
            return None
        with _opened(path) as file:
            return "not a text" if b"\0" in file.read(8192) or stem != name else None
    except OSError as error:
        return error.strerror or str(error)


def _know(redaction: Redaction, run: Run) -> None:
    """What is private of this machine and this run, whether a log has it or not."""
    homes = {str(Path.home())} if Path.home() != Path("/") else set()
    # That of root has no owner's name in it, by which those of others are found in texts.
    if run.manifest.python.startswith("/root/"):
        homes.add("/root")
    places = {str(run.folder.absolute()): "$RUN", str(run.folder.resolve()): "$RUN"}
    places[run.manifest.cwd] = "$PROJECT"
    for record in run.manifest.passes:
        with contextlib.suppress(OSError, *NOT_JSON):
            with _opened(run.raw(record) / "child.json") as file:
                config = json.loads(file.read())
            places.setdefault(str(config.get("script_root") or ""), "$PROJECT")
            places.setdefault(str(config.get("run") or ""), "$RUN")
    for place, instead in sorted(places.items(), key=lambda row: -len(row[0])):
        if place.count("/") >= 2 and place not in homes:
            redaction.add(latin(place.rstrip("/")), "project folder", instead)
    for home in homes:
        redaction.add(latin(home), "home folder", "~")
    with contextlib.suppress(KeyError, OSError):
        redaction.person(getpass.getuser())
    redaction.person(platform.node())
    for name, value in os.environ.items():
        if is_secret(name) and is_distinct(value) and not value.startswith("/"):
            redaction.add(latin(value), "variable")


def _make_private(facts: Facts, redaction: Redaction) -> None:
    """Take what is private out of every text of ``facts``."""
    data: list[Any] = [to_json(facts.diagnosis)]
    data.append(facts.results and trials_to_json(facts.results))
    data.append([facts.error, facts.versions, facts.command])
    data.append(facts.left_out)
    texts: dict[str, str] = {}

    def changed(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return change(value)
        if isinstance(value, dict):
            return {key: changed(item, change) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [changed(item, change) for item in value]
        return value

    changed(data, lambda text: texts.setdefault(text, text))
    texts.update(zip(texts, redaction.in_texts(list(texts)), strict=True))
    diagnosis, results, own, left_out = changed(data, texts.__getitem__)
    variables = diagnosis["environment"].get("variables") or {}
    for name in variables if redaction.level != "none" else ():
        if variables[name] and not HARMLESS_VARIABLES.fullmatch(name):
            variables[name] = "[masked variable]"
    # The archive has the logs that tlparse reads, and no report of its own to link to.
    rest = {title: path for title, path in diagnosis["links"].items() if "tlparse/" not in path}
    facts.diagnosis = from_json({**diagnosis, "links": rest})
    facts.results = trials_from_json(results) if results else None
    facts.error, facts.versions, facts.command = own
    facts.left_out = [(name, why) for name, why in left_out]


def _results(run: Run) -> Results | None:
    """What ``traceview try`` or ``sweep`` recorded."""
    try:
        with _opened(run.folder / RESULTS) as file:
            return trials_from_json(json.loads(file.read()))
    except (OSError, NothingToAnalyse, *NOT_JSON):
        return None


def _traceback(run: Run) -> str:
    """The last traceback that the script wrote, of the first pass that failed."""
    for record in run.manifest.passes:
        if record.ending.is_well or record.ending.kind == "interrupted":
            continue
        path = run.raw(record) / "stderr.txt"
        with contextlib.suppress(OSError), _opened(path) as file:
            file.seek(max(0, path.stat().st_size - _PIECE))
            text = file.read().decode("utf-8", "replace")
            begin = text.rfind("Traceback (most recent call last):")
            if text.strip():
                return text[begin if begin >= 0 else -_LAST :].strip()
    return ""


def _pack(file: IO[bytes], files: list[_File], facts: Facts, redaction: Redaction) -> bytes:
    """All files, the page last, since it counts what was replaced in the others; the page."""
    used: set[str] = set()
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = MARK.encode()
        for each in files:
            name = stem = redaction.in_text(each.name)
            number = 1
            while name in used:  # without what is private, two files may have one name
                number += 1
                head, dot, tail = stem.partition(".")
                name = f"{head}-{number}{dot}{tail}"
            used.add(name)
            packed = name.endswith(".gz")
            with archive.open(_member(name, packed), "w", force_zip64=True) as member:
                target: Any = gzip.GzipFile("", "wb", _FAST, member, 0) if packed else member
                for piece in each.pieces():
                    target.write(redaction.redacted(piece, name).encode("latin-1"))
                if packed:
                    target.close()
        facts.replaced, facts.members = redaction.table(), sorted(used)
        page = redaction.in_text(f"{MARK}\n{render(facts)}\n").encode("utf-8", "replace")
        archive.writestr(_member(PAGE, False), page, compresslevel=_FAST)
    return page


def _member(name: str, packed: bool) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
    info._compresslevel = _FAST  # type: ignore[attr-defined] # as ZipFile.write sets it
    info.external_attr = 0o600 << 16
    return info


def _search(archive: IO[bytes], redaction: Redaction) -> None:
    """RunFolderError if a value that was taken out is anywhere in the archive."""
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            kind = redaction.leaks(latin(info.filename))
            before = ""
            with packed.open(info) as member:
                for piece in pieces(_unpacked(member, info.filename)):
                    kind = kind or redaction.leaks(before + piece)
                    before = piece[-min(redaction.longest, 1 << 16) :]
            if kind is not None:
                fact = f"A private value ({kind}) was left in {info.filename}: nothing was written."
                remedy = "Take it out of the run folder yourself, or report this as a bug."
                raise RunFolderError(fact, remedy, slug="ticket-leaks")


def _check_ours(page: Path, archive: Path) -> None:
    """RunFolderError if a file is there that traceview did not write."""
    for path in (page, archive):
        if not os.path.lexists(path):
            continue
        try:
            if path == page:
                with _opened(path) as file:
                    ours = file.read(len(MARK)) == MARK.encode()
            else:
                with _opened(path) as file, zipfile.ZipFile(file) as packed:
                    ours = packed.comment == MARK.encode()
        except (OSError, zipfile.BadZipFile):
            ours = False
        if not ours:
            fact = f"{path} exists and is no ticket of traceview, so nothing was written."
            raise RunFolderError(fact, "Name another folder with -o DIR.", slug="not-ours")


def _unpacked(file: IO[bytes], name: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.GzipFile(fileobj=file)) if name.endswith(".gz") else file


def _opened(path: Path) -> IO[bytes]:
    """The file itself, never what a link points to."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")

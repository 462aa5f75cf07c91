"""``ticket.md`` and ``ticket.zip`` of a run: every text without what is private, then searched again."""

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from traceview.collectors.child.secrets import is_secret
from traceview.contracts import text_of
from traceview.diagnosis import Diagnosis, from_json, to_json
from traceview.errors import NothingToAnalyse, RunFolderError
from traceview.json_errors import NOT_JSON
from traceview.run import MANIFEST, Run
from traceview.tables import Tables
from traceview.ticket.form import Facts, Form, render
from traceview.ticket.redaction import (
    HARMLESS_VARIABLES,
    SHORTEST,
    Level,
    Redaction,
    latin,
)
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
_UTF16 = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_ENV_SECONDS = 60
_STRATEGY = 3  # of zlib: logs pack to 6 % with it, in a third of the time that 9 takes


@dataclass(frozen=True)
class Written:
    """What was written, and what was taken out: kind, how often, in how many files."""

    page: Path
    archive: Path
    bytes: int
    replaced: list[tuple[str, int, int]]
    left_out: tuple[tuple[str, str], ...]


@dataclass
class _File:
    """One text of the bundle: of a file, or made here."""

    name: str
    path: Path | None = None
    text: str = ""
    change: Callable[[str], str] | None = field(default=None)

    def pieces(self) -> Iterator[str]:
        """Whole lines, as Latin-1."""
        if self.path is None or self.change is not None:
            text = self.text
            if self.path is not None and self.change is not None:
                with _opened(self.path) as file:
                    text = self.change(file.read().decode("utf-8", "surrogateescape"))
            yield from pieces(io.BytesIO(text.encode("utf-8", "surrogateescape")))
            return
        with _opened(self.path) as file:
            if self.name.endswith(".gz"):
                yield from pieces(gzip.GzipFile(fileobj=file))
            else:
                yield from pieces(file)


def write_ticket(
    run: Run,
    tables: Tables,
    diagnosis: Diagnosis,
    folder: Path,
    *,
    level: Level,
    form: Form,
    versions: str | None,
    page_of: Callable[[Diagnosis, Results | None], str],
) -> Written:
    """Write both files into ``folder``; RunFolderError if one is not ours or can't be written.

    ``versions`` is what torch's collect_env printed. ``page_of`` makes the report of the private
    diagnosis. Nothing is left where a value that was to be taken out is found again.
    """
    page, archive = folder / PAGE, folder / ARCHIVE
    _check_ours(page, archive)
    redaction = Redaction(level)
    files, left_out = _files(run, redaction)
    _know(redaction, run)
    facts = Facts(diagnosis, _results(run), form, level)
    facts.error = _traceback(run) if diagnosis.verdict.outcome == "failed" else None
    facts.versions, facts.runnable = versions, _runnable(tables)
    facts.command = list(run.manifest.target)
    plain = [to_json(diagnosis), *([trials_to_json(facts.results)] if facts.results else [])]
    own = [text_of(each) for each in plain]
    own += [facts.error or "", facts.versions or "", facts.runnable or ""]
    for text in own:
        redaction.learn(latin(text))
    for file in files:
        for piece in file.pieces():
            redaction.learn(piece)

    private, *trials = _in_data(plain, redaction)
    facts.diagnosis = from_json(private)
    facts.results = trials_from_json(trials[0]) if trials else None
    facts.error, facts.versions, facts.runnable, *facts.command = redaction.in_texts(
        [facts.error or "", facts.versions or "", facts.runnable or "", *facts.command]
    )
    files.append(_File("diagnosis.json", text=text_of(private) + "\n"))
    files.append(_File("report.html", text=page_of(facts.diagnosis, facts.results)))
    if facts.runnable:
        files.append(_File("fx_graph_runnable.py", text=facts.runnable))
    facts.left_out = left_out
    scratch = archive.with_name(f".{ARCHIVE}.{os.getpid()}.part")
    text = page.with_name(f".{PAGE}.{os.getpid()}.part")
    try:
        with _created(scratch) as file:
            _pack(file, files, facts, redaction)
        rendered = _page_in(scratch)
        with _created(text) as file:
            file.write(rendered)
        _search(scratch, redaction)
        size = scratch.stat().st_size
        scratch.replace(archive)
        text.replace(page)
    except OSError as error:
        fact = f"The ticket can't be written to {folder} ({error.strerror or error})."
        raise RunFolderError(fact, "Name another folder with -o DIR.", slug="unwritable") from error
    finally:
        for path in (scratch, text):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return Written(page, archive, size, redaction.table(), tuple(left_out))


def collected_versions(run: Run) -> str | None:
    """What ``python -m torch.utils.collect_env`` prints with the run's interpreter, if it can."""
    python = run.manifest.python
    if not python or not os.access(python, os.X_OK):
        return None
    try:
        done = subprocess.run(
            [python, "-m", "torch.utils.collect_env"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_ENV_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip() or None


def pieces(stream: IO[bytes]) -> Iterator[str]:
    """Whole lines of a text, some MB at a time; what damage leaves of a packed one."""
    rest, wide = b"", ""
    while True:
        try:
            read = stream.read(_PIECE)
        except (EOFError, OSError, zlib.error):
            read = b""
        if not rest and not wide and read[:2] in _UTF16:
            wide = _UTF16[read[:2]]
            data = read + stream.read()
            yield latin(data.decode(wide, "replace"))
            return
        rest += read
        if not read:
            break
        end = _end_of_lines(rest)
        if end:
            yield rest[:end].decode("latin-1")
            rest = rest[end:]
    if rest:
        yield rest.decode("latin-1")


def _end_of_lines(data: bytes) -> int:
    """Where ``data`` can be cut: after a line, and not within a private key."""
    end = data.rfind(b"\n") + 1
    key = data.rfind(b"-----BEGIN ", max(0, end - 20_000), end)
    if key > 0 and data.find(b"-----END ", key, end) < 0 and len(data) < _MOST:
        end = data.rfind(b"\n", 0, key) + 1
    if not end and len(data) >= _MOST:
        end = max(data.rfind(b", "), data.rfind(b" ")) + 1 or len(data)
    return end


def _files(run: Run, redaction: Redaction) -> tuple[list[_File], list[tuple[str, str]]]:
    """The texts of the run folder; and what is not one, with the reason."""
    found: list[_File] = []
    left_out: list[tuple[str, str]] = []

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
        try:
            mode = path.lstat().st_mode
        except OSError:
            return
        why = _unfit(path, name, mode)
        if why is not None:
            left_out.append((name, why))
        elif name.startswith("raw/sources/") and redaction.level != "none":
            if redaction.level == "strict":
                with _opened(path) as file:
                    source = file.read().decode("utf-8", "surrogateescape")
                hide_source(path.name, source, redaction)
                left_out.append((name, "source is left out with --redact strict"))
            else:
                change = lambda text: without_strings(text, redaction)  # noqa: E731
                found.append(_File(name, path, change=change))
        else:
            found.append(_File(name, path))

    for name in _RECORDS:
        if (run.folder / name).exists():
            take(run.folder / name, name)
    raw = run.folder / "raw"
    if raw.is_symlink():
        left_out.append(("raw", "a symbolic link"))
    elif raw.is_dir():
        walk(raw, "raw")
    return found, left_out


def _unfit(path: Path, name: str, mode: int) -> str | None:
    """Why a file can't be in the bundle."""
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if not stat.S_ISREG(mode):
        return "not a file"
    stem = name.removesuffix(".gz")
    if Path(stem).suffix.lower() in _TEXTS:
        return None
    with _opened(path) as file:
        return "not a text" if b"\0" in file.read(8192) or stem != name else None


def _know(redaction: Redaction, run: Run) -> None:
    """What is private of this machine and this run, whether a log has it or not."""
    homes = {str(Path.home())} if Path.home() != Path("/") else set()
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
        if is_secret(name) and len(value) >= SHORTEST and re.search(r"[^A-Za-z/]", value):
            redaction.add(latin(value), "variable")


def _in_data(data: list[dict[str, Any]], redaction: Redaction) -> list[dict[str, Any]]:
    """Plain JSON data with every text private."""
    texts: dict[str, str] = {}

    def collect(value: object) -> None:
        if isinstance(value, str):
            texts[value] = value
        elif isinstance(value, dict):
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)

    def changed(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return texts[value]
        if isinstance(value, dict):
            return {key: changed(item) for key, item in value.items()}
        return [changed(item) for item in value] if isinstance(value, list) else value

    collect(data)
    texts = dict(zip(texts, redaction.in_texts(list(texts)), strict=True))
    private: list[dict[str, Any]] = changed(data)
    for each in private:
        variables = (each.get("environment") or {}).get("variables")
        for name in variables or () if redaction.level != "none" else ():
            if variables[name] and not HARMLESS_VARIABLES.fullmatch(name):
                variables[name] = "[masked variable]"
    return private


def _results(run: Run) -> Results | None:
    """What ``traceview try`` or ``sweep`` recorded."""
    try:
        with _opened(run.folder / RESULTS) as file:
            return trials_from_json(json.loads(file.read()))
    except (OSError, NothingToAnalyse, *NOT_JSON):
        return None


def _traceback(run: Run) -> str | None:
    """The last traceback that the script wrote, of the first pass that failed."""
    for record in run.manifest.passes:
        ending = record.ending
        if ending.kind in ("stopped", "interrupted") or (ending.kind, ending.code) == ("exit", 0):
            continue
        with contextlib.suppress(OSError), _opened(run.raw(record) / "stderr.txt") as file:
            file.seek(max(0, (run.raw(record) / "stderr.txt").stat().st_size - _PIECE))
            text = file.read().decode("utf-8", "replace")
            begin = text.rfind("Traceback (most recent call last):")
            if text.strip():
                return text[begin if begin >= 0 else -4000 :].strip()
    return None


def _runnable(tables: Tables) -> str | None:
    """torch's own reproducer of the compile that failed."""
    failed = tables["compiles"].filter(tables["compiles"]["outcome"] == "failed")
    graphs = tables["graphs"]
    if failed.is_empty() or graphs.is_empty():
        return None
    of_it = graphs.filter(
        (graphs["kind"] == "fx_graph_runnable")
        & graphs["compile_id"].is_in(failed["compile_id"].to_list())
    )
    return None if of_it.is_empty() else of_it["text"][-1]


def _pack(file: IO[bytes], files: list[_File], facts: Facts, redaction: Redaction) -> None:
    """All files, the page last, since it counts what was replaced in the others."""
    used: set[str] = set()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_STRATEGY) as archive:
        archive.comment = MARK.encode()
        for each in files:
            name = _free(redaction.in_text(each.name), used)
            packed = name.endswith(".gz")
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            with archive.open(info, "w", force_zip64=True) as member:
                target: Any = gzip.GzipFile("", "wb", _STRATEGY, member, 0) if packed else member
                for piece in each.pieces():
                    target.write(redaction.redacted(piece, name).encode("latin-1"))
                if packed:
                    target.close()
        facts.replaced, facts.members = redaction.table(), sorted(used)
        page = redaction.in_text(f"{MARK}\n{render(facts)}\n")
        info = zipfile.ZipInfo(PAGE)
        info.external_attr = 0o600 << 16
        archive.writestr(info, page, zipfile.ZIP_DEFLATED)


def _free(name: str, used: set[str]) -> str:
    """``name``, or another if two files have it without what is private."""
    stem, number = name, 1
    while name in used:
        number += 1
        head, dot, tail = stem.partition(".")
        name = f"{head}-{number}{dot}{tail}"
    used.add(name)
    return name


def _page_in(archive: Path) -> bytes:
    with zipfile.ZipFile(archive) as packed:
        return packed.read(PAGE)


def _search(archive: Path, redaction: Redaction) -> None:
    """RunFolderError if a value that was taken out is anywhere in the archive."""
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            kind = redaction.leaks(latin(info.filename))
            with packed.open(info) as member:
                stream = gzip.GzipFile(fileobj=member) if info.filename.endswith(".gz") else member
                before = ""
                for piece in pieces(stream):  # type: ignore[arg-type]
                    kind = kind or redaction.leaks(before + piece)
                    before = piece[-min(redaction.longest, 1 << 16) :]
            if kind is not None:
                fact = f"The ticket still had a value of kind {kind!r} in {info.filename} and was removed."
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


def _opened(path: Path) -> IO[bytes]:
    """The file itself, never what a link points to."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")


def _created(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.fdopen(
        os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w+b"
    )

"""What torch.compile does in this process, read from torch's structured log as a post-mortem is.

``logged`` gives the log to a handler, ``Watch`` each compile to a function as soon as it has ended.
torch's own logging settings stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import Any

import msgspec

from traceview.derive.facts import add_log_facts
from traceview.parse.damage import Damage
from traceview.parse.merge import gathered
from traceview.parse.structured import read_stream
from traceview.tables import Tables
from traceview.torchtext.frames import written_name
from traceview.words import names

_METRICS = ("compilation_metrics", "bwd_compilation_metrics")
#: What is kept of a compile until it has ended: graphs and generated code are most of a log.
_KEPT = frozenset(("dynamo_start", *_METRICS))
_ARTIFACTS = frozenset(("dynamo_graph_break_reason", "recompile_reasons", "dynamo_error"))
_CODE = ("co_name", "co_filename", "co_firstlineno")
_IDS = ("compiled_autograd_id", "frame_id", "frame_compile_id")


class Compile(msgspec.Struct, frozen=True):
    """A compile that has ended; ``recompile`` and ``breaks`` are sentences with place and reason.

    ``function`` is ``forward()``, ``guard`` what failed where the code was compiled before, and
    ``outcome`` as in table ``compiles``.
    """

    compile_id: str
    function: str
    file: str | None
    line: int | None
    is_forward: bool
    outcome: str
    started_us: float | None
    seconds: float
    guard: str | None = None
    recompile: str | None = None
    breaks: tuple[str, ...] = ()


def breaks_of(tables: Tables) -> list[str]:
    """Each line that breaks a graph, with torch's reason."""
    columns = tables["break_sites"].select("file", "line", "gb_type", "reason")
    return [
        f"graph break at {_at(file, line)}: {kind or reason}"
        for file, line, kind, reason in columns.iter_rows()
    ]


def recompiles_of(tables: Tables) -> list[str]:
    """Each recompile, with the guard that had failed."""
    columns = tables["recompile_causes"].select(*_CODE, "guard")
    return [_again(*row) for row in columns.iter_rows()]


def _again(co_name: str | None, file: str | None, line: int | None, guard: str) -> str:
    function = f"{written_name(co_name)}() at {_at(file, line)}"
    return f"{function} was compiled again, as a guard failed: {guard}"


def _at(file: str | None, line: int | None) -> str:
    return "an unknown line" if file is None else names.at_line(file, line or 0)


@contextmanager
def logged(handler: logging.Handler) -> Iterator[None]:
    """Give ``handler`` torch's structured log, and first the file names it was given before.

    torch writes a name once in a process, and a number from then on.
    """
    from torch._logging import _internal as logs
    from torch._logging import structured

    handler.setFormatter(logs.TorchLogsFormatter(trace=True))
    for known in list(structured.INTERN_TABLE.items()):
        extra = {"metadata": {"str": known}, "payload": None}
        name, level = logs.trace_log.name, logging.DEBUG
        handler.handle(
            logs.trace_log.makeRecord(name, level, __file__, 1, "", (), None, extra=extra)
        )
    logs.trace_log.addHandler(handler)
    propagates, logs.trace_log.propagate = logs.trace_log.propagate, False
    try:
        yield
    finally:
        logs.trace_log.propagate = propagates
        logs.trace_log.removeHandler(handler)


class Watch(logging.Handler):
    """From ``start`` to ``stop``, calls ``ended`` with each compile, in the thread that compiled.

    An error in here is logging's to report: it does not end the compile.
    """

    def __init__(self, ended: Callable[[Compile], None]) -> None:
        super().__init__(logging.DEBUG)
        self._ended = ended
        self._strings: list[str] = []
        self._open: dict[tuple[object, ...], list[str]] = {}
        self._code: dict[str, tuple[Any, ...]] = {}
        self._held = ExitStack()

    def start(self) -> None:
        """Watch from now on."""
        self.stop()
        self._strings.clear()
        self._held.enter_context(logged(self))

    def stop(self) -> None:
        """Watch no more; a compile that has not ended is not reported."""
        self._held.close()
        self._open.clear()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what is read of the log, and read it where a compile ends."""
        try:
            metadata = record.metadata  # type: ignore[attr-defined]
            if "str" in metadata:
                self._strings.append(self.format(record))
                return
            artifact = metadata.get("artifact")
            if not (_KEPT & metadata.keys() or (artifact and artifact.get("name") in _ARTIFACTS)):
                return
            ids = tuple(map(metadata.get, _IDS))
            # A backward that is compiled later comes alone, else it is a part of what is open.
            ends = _METRICS[0] in metadata or (_METRICS[1] in metadata and ids not in self._open)
            self._open.setdefault(ids, []).append(self.format(record))
            if ends:
                self._read(self._open.pop(ids))
        except Exception:  # noqa: BLE001 - as logging's own handlers do
            self.handleError(record)

    def _read(self, lines: list[str]) -> None:
        text = "\n".join([*self._strings, *lines, ""])
        log = BytesIO(text.encode(errors="backslashreplace"))
        tables = Tables(gathered(read_stream(log, "compiles", Damage())))
        add_log_facts(tables)
        breaks = tuple(breaks_of(tables))
        guard = next(iter(tables["recompile_causes"]["guard"]), None)
        for row in tables["compiles"].filter("metrics").iter_rows(named=True):
            # A later backward, or one that only met the recompile limit, does not name its code.
            frame, code = row["compile_id"].rpartition("/")[0], tuple(row[name] for name in _CODE)
            code = self._code.get(frame, code) if code[0] is None else code
            self._code[frame] = name, file, line = code
            forward = row["is_forward"]
            found = Compile(
                compile_id=row["compile_id"],
                function=names.function(name),
                file=file,
                line=line,
                is_forward=forward,
                outcome=row["outcome"],
                started_us=row["started_us"],
                seconds=(row["duration_us"] or 0.0) / 1e6,
                guard=guard if forward else None,
                recompile=_again(name, file, line, guard) if forward and guard else None,
                breaks=breaks if forward else (),
            )
            self._ended(found)

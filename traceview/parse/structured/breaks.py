"""Graph breaks and recompiles: artifacts dynamo_graph_break_reason and recompile_reasons."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from traceview.parse.cutting import Record
from traceview.parse.structured.decode import text_of
from traceview.parse.structured.state import Process, Reader, Row
from traceview.torchtext.frames import StackFrame, first_user_frame, stack_json
from traceview.torchtext.graph_breaks import parse_graph_break
from traceview.torchtext.guards import parse_guard

_VALUES = frozenset(("value", "module_int", "type_id", "obj_id", "length"))
_OTHER = {"True": "False", "False": "True"}  # a guard on a bool fails on the other one only
_REASONS = msgspec.json.Decoder(list[str])


def graph_break(reader: Reader, record: Record) -> None:
    """One occurrence of a graph break; torch does not leave out repeated ones here."""
    compile = reader.process.find(record)
    found = parse_graph_break(text_of(reader, record))
    if compile is not None:
        compile.breaks_skipped |= found.frame_skipped
    at = StackFrame(found.user_file, found.user_line, None) if found.user_file else None
    user = first_user_frame(found.stack) or at
    row = {
        "attempt": record.context.attempt,
        "gb_id": found.gb_id,
        "gb_type": found.gb_type,
        "reason": found.reason,
        "explanation": found.explanation,
        "hints": list(found.hints),
        "context": found.context,
        "frame_skipped": found.frame_skipped,
        "user_file": user.file if user else None,
        "user_line": user.line if user else None,
        "user_function": user.function if user else None,
        "user_stack": stack_json(found.stack),
        "origin": "structured",
    }
    reader.process.add("graph_breaks", record, compile, row)


def recompile_reasons(reader: Reader, record: Record) -> None:
    """The guards that failed, newest cache entry first: a JSON list, or one bare string."""
    compile = reader.process.find(record)
    text = text_of(reader, record)
    for order, reason in enumerate(_reasons(text)):
        found = parse_guard(reason)
        row = {
            "order": order,
            "failed_compile_id": found.failed_compile_id,
            "guard": found.guard,
            "kind": found.kind,
            "source_name": found.source_name,
            "dim": found.dim,
            "old": found.old,
            "new": found.new,
            "user_file": found.user_file,
            "user_line": found.user_line,
            "user_code": found.user_code,
            "origin": "structured",
        }
        reader.process.add("recompiles", record, compile, row)


def finish(process: Process) -> None:
    """Fill in what only the whole log shows: the code object, whole file names, new values."""
    code = {row["compile_key"]: row for row in process.rows["compiles"] if row["is_forward"]}
    for row in process.rows["recompiles"]:
        _name_code(row, code)
    _fill_new(process.rows["recompiles"])


def _name_code(row: Row, code: dict[str, Row]) -> None:
    """co_name and its place, from the compile itself or from the entry whose guard failed.

    A compile that only met the recompile limit says nothing about its code, the failed entry does.
    """
    key, failed = row["compile_key"], row["failed_compile_id"]
    candidates = [code.get(key)]
    if key and failed:
        candidates.append(code.get(key.removesuffix(row["compile_id"]) + failed))
    named = next((c for c in candidates if c and c.get("co_name")), None)
    if named is None:
        return
    for column in ("co_name", "co_filename", "co_firstlineno"):
        row[column] = named.get(column)
    short, whole = row.get("user_file"), named.get("co_filename")
    if short and whole and len(short) < len(whole) and whole.endswith(short):
        row["user_file"] = whole


def _fill_new(rows: list[Row]) -> None:
    """The value that a guard met, where its text lacks it.

    Compile n of a frame holds the value that made compile n-1's guard fail; it shows as ``old``
    when compile n's own guard on the same source fails later.
    """
    expected: dict[tuple[str, str | None, str], set[str]] = defaultdict(set)
    for row in rows:
        if row["old"] is not None and row["failed_compile_id"] and row["compile_key"]:
            entry = row["compile_key"].removesuffix(row["compile_id"]) + row["failed_compile_id"]
            expected[entry, row["source_name"], row["kind"]].add(row["old"])
    for row in rows:
        if row["new"] is None and row["kind"] in _VALUES and row["compile_key"]:
            later = expected.get((row["compile_key"], row["source_name"], row["kind"]), set())
            row["new"] = next(iter(later)) if len(later) == 1 else _OTHER.get(row["old"])


def _reasons(text: str) -> list[str]:
    if text.startswith("["):
        try:
            return _REASONS.decode(text)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return [text]
    if text.startswith('"'):
        try:
            return [msgspec.json.decode(text, type=str)]
        except (msgspec.DecodeError, msgspec.ValidationError):
            return [text]
    return [text] if text.strip() else []

"""What Dynamo logs of a frame: graph breaks, recompiles, symbolic sizes and guards."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress

import msgspec
from msgspec.structs import asdict

from traceview import limits
from traceview.json_errors import NOT_JSON
from traceview.parse.cutting import Record
from traceview.parse.payloads.guard_tree import Guards, guards
from traceview.parse.structured.decode import as_text, json_object, text_of, told
from traceview.parse.structured.state import Process, Reader
from traceview.torchtext.frames import user_columns
from traceview.torchtext.graph_breaks import break_columns
from traceview.torchtext.guards import parse_guard

_VALUES = frozenset(("value", "module_int", "type_id", "obj_id", "length"))
_OTHER = {"True": "False", "False": "True"}  # a guard on a bool fails on the other one only
_REASONS = msgspec.json.Decoder(list[str] | str)
#: Kind of record → event, and which fields are the ``value`` and the ``expr``.
SYMBOL_EVENTS: dict[str, tuple[str, str | None, str]] = {
    "create_symbol": ("create", "val", "vr"),  # a size became symbolic
    "create_unbacked_symbol": ("unbacked", None, "vr"),  # a size that only the data knows
    "symbolic_shape_specialization": ("specialize", "value", "reason"),  # it was set to one value
    "guard_added_fast": ("guard", None, "expr"),
    "guard_added": ("guard", None, "expr"),
}


def graph_break(reader: Reader, record: Record) -> None:
    """One occurrence of a graph break; torch does not leave out repeated ones here."""
    compile = reader.process.find(record)
    row = break_columns(text_of(reader, record))
    if compile is not None:
        compile.breaks_skipped |= row["frame_skipped"]
    row |= {"attempt": record.context.attempt, "origin": "structured"}
    reader.process.add("graph_breaks", record, compile, row)


def recompile_reasons(reader: Reader, record: Record) -> None:
    """The guards that failed, newest cache entry first: a JSON list, or one bare string."""
    compile = reader.process.find(record)
    text = text_of(reader, record)
    reasons = [text] if text.strip() else []
    if text.startswith(("[", '"')):
        with suppress(*NOT_JSON):
            found = _REASONS.decode(text)
            reasons = [found] if isinstance(found, str) else found
    for order, reason in enumerate(reasons):
        row = asdict(parse_guard(reason)) | {"order": order, "origin": "structured"}
        reader.process.add("recompiles", record, compile, row)


def symbol(reader: Reader, record: Record) -> None:
    """``{symbol, source or sources, user_stack, stack, …}``; see ``SYMBOL_EVENTS`` for the rest."""
    process = reader.process
    fields = json_object(reader, record, record.body)
    compile = process.find(record)
    event, value, expr = SYMBOL_EVENTS[record.key]
    if event == "create" and compile is not None:
        compile.symbols += 1
    sources = fields.get("source") or fields.get("sources")
    named = ", ".join(map(str, sources)) if isinstance(sources, list) else as_text(sources)
    row = {
        "event": event,
        "symbol": as_text(fields.get("symbol")),
        "source_name": named,
        "value": as_text(fields.get(value)) if value else None,
        "expr": as_text(fields.get(expr)),
        **user_columns(process.stack(fields.get("user_stack"))),
    }
    process.add("symbols", record, compile, row)


def guard_tree(reader: Reader, record: Record) -> None:
    """One row for each leaf."""
    process = reader.process
    head = process.head(record, process.find(record))
    found = told(record, Guards, lambda: guards(text_of(reader, record, limits.now.long_text)))
    if found.kind:
        columns = {name: getattr(found, name) for name in Guards.__struct_fields__}
        process.add_block("guards", head, columns)


def finish(process: Process) -> None:
    """Fill in what only the whole log shows: the code object, whole file names, new values.

    Compile n of a frame holds the value that made compile n-1's guard fail; it shows as ``old``
    when compile n's own guard on the same source fails later.
    """
    code = {row["compile_key"]: row for row in process.rows["compiles"] if row["is_forward"]}
    rows = process.rows["recompiles"]
    expected: dict[tuple[str, str | None, str], set[str]] = defaultdict(set)
    for row in rows:
        key, failed = row["compile_key"], row["failed_compile_id"]
        entry = key.removesuffix(row["compile_id"]) + failed if key and failed else None
        # A compile that only met the recompile limit names no code, the entry that failed does.
        compiles = (code.get(key), code.get(entry))
        named = next((each for each in compiles if each and each.get("co_name")), None)
        if named is not None:
            for column in ("co_name", "co_filename", "co_firstlineno"):
                row[column] = named.get(column)
            short, whole = row.get("user_file"), named.get("co_filename")
            if short and whole and len(short) < len(whole) and whole.endswith(short):
                row["user_file"] = whole
        if row["old"] is not None and entry:
            expected[entry, row["source_name"], row["kind"]].add(row["old"])
    for row in rows:
        if row["new"] is None and row["kind"] in _VALUES and row["compile_key"]:
            later = expected.get((row["compile_key"], row["source_name"], row["kind"]), set())
            row["new"] = next(iter(later)) if len(later) == 1 else _OTHER.get(row["old"])

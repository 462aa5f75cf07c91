"""Symbolic sizes, and the guards of a compile: one row each."""

from __future__ import annotations

from traceview.parse.cutting import Record
from traceview.parse.payloads import TREE_LIMIT
from traceview.parse.payloads.guard_tree import Guards, guards
from traceview.parse.structured.decode import as_text, json_object, text_of, told
from traceview.parse.structured.state import Reader
from traceview.torchtext.frames import user_columns

#: Kind of record → event, and which fields are the ``value`` and the ``expr``.
EVENTS: dict[str, tuple[str, str | None, str]] = {
    "create_symbol": ("create", "val", "vr"),  # a size became symbolic
    "create_unbacked_symbol": ("unbacked", None, "vr"),  # a size that only the data knows
    "symbolic_shape_specialization": ("specialize", "value", "reason"),  # it was set to one value
    "guard_added_fast": ("guard", None, "expr"),
    "guard_added": ("guard", None, "expr"),
}


def symbol(reader: Reader, record: Record) -> None:
    """``{symbol, source or sources, user_stack, stack, …}``; see ``EVENTS`` for the rest."""
    process = reader.process
    fields = json_object(reader, record, record.body)
    compile = process.find(record)
    event, value, expr = EVENTS[record.key]
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
    found = told(record, Guards, lambda: guards(text_of(reader, record, TREE_LIMIT)))
    if found.kind:
        columns = {name: getattr(found, name) for name in Guards.__struct_fields__}
        process.add_block("guards", head, columns)

"""Symbolic sizes, and the guards of a compile: one row each."""

from __future__ import annotations

from typing import Any

from traceview.parse.cutting import Record
from traceview.parse.payloads.guard_tree import Guards, guards
from traceview.parse.payloads.text import TREE_LIMIT
from traceview.parse.structured.decode import json_object, text_of, told
from traceview.parse.structured.state import Reader
from traceview.torchtext.frames import first_user_frame, stack_json


def create_symbol(reader: Reader, record: Record) -> None:
    """``{symbol, val, vr, source, user_stack, stack}``: a size became symbolic."""
    fields = json_object(reader, record, record.body)
    compile = reader.process.find(record)
    if compile is not None:
        compile.symbols += 1
    _symbol(reader, record, "create", fields, fields.get("val"), fields.get("vr"))


def create_unbacked_symbol(reader: Reader, record: Record) -> None:
    """``{symbol, node_id, vr, user_stack, stack}``: a size that only the data knows."""
    fields = json_object(reader, record, record.body)
    _symbol(reader, record, "unbacked", fields, None, fields.get("vr"))


def specialization(reader: Reader, record: Record) -> None:
    """``{symbol, sources, value, reason, stack, user_stack}``: a symbol was set to one value."""
    fields = json_object(reader, record, record.body)
    _symbol(reader, record, "specialize", fields, fields.get("value"), fields.get("reason"))


def guard_added(reader: Reader, record: Record) -> None:
    """``{expr, user_stack, stack}``: a guard on symbolic sizes."""
    fields = json_object(reader, record, record.body)
    _symbol(reader, record, "guard", fields, None, fields.get("expr"))


def _symbol(
    reader: Reader, record: Record, event: str, fields: dict[str, Any], value: object, expr: object
) -> None:
    process = reader.process
    stack = process.stack(fields.get("user_stack"))
    user = first_user_frame(stack)
    sources = fields.get("source") or fields.get("sources")
    row = {
        "event": event,
        "symbol": _text(fields.get("symbol")),
        "source_name": ", ".join(map(str, sources))
        if isinstance(sources, list)
        else _text(sources),
        "value": _text(value),
        "expr": _text(expr),
        "user_file": user.file if user else None,
        "user_line": user.line if user else None,
        "user_function": user.function if user else None,
        "user_stack": stack_json(stack),
    }
    process.add("symbols", record, process.find(record), row)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def guard_tree(reader: Reader, record: Record) -> None:
    """One row for each leaf."""
    process = reader.process
    head = process.head(record, process.find(record))
    found = told(record, Guards, lambda: guards(text_of(reader, record, TREE_LIMIT)))
    if found.kind:
        columns = {name: getattr(found, name) for name in Guards.__struct_fields__}
        process.add_block("guards", head, columns)

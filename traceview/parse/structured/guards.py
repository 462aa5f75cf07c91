"""Guards: the tree that ``dynamo_cpp_guards_str`` prints."""

from __future__ import annotations

from traceview.parse.cutting import Record
from traceview.parse.payloads.guard_tree import Guards, guards
from traceview.parse.payloads.text import TREE_LIMIT
from traceview.parse.structured.decode import text_of, told
from traceview.parse.structured.state import Reader


def guard_tree(reader: Reader, record: Record) -> None:
    """One row for each leaf."""
    process = reader.process
    head = process.head(record, process.find(record))
    found = told(record, Guards, lambda: guards(text_of(reader, record, TREE_LIMIT)))
    if found.kind:
        columns = {name: getattr(found, name) for name in Guards.__struct_fields__}
        process.add_block("guards", head, columns)

"""Compiles: dynamo_start, compilation_metrics, bwd_compilation_metrics, dynamo_error."""

from __future__ import annotations

from traceview.parse.cutting import Record
from traceview.parse.payloads.metrics import METRICS, Metrics, metrics_of
from traceview.parse.structured import settings
from traceview.parse.structured.decode import decode, json_object
from traceview.parse.structured.state import Compile, Process, Reader, Row
from traceview.torchtext.frames import first_user_frame, stack_json, written_name

_IDENTITY = ("compile_key", "compile_id", "pid", "epoch", "frame_id", "frame_compile_id")
_CODE = ("co_name", "co_filename", "co_firstlineno", "user_file", "user_line", "user_function")


def dynamo_start(reader: Reader, record: Record) -> None:
    """``{"stack": […]}``: Dynamo begins with a frame; the stack ends in that frame."""
    process = reader.process
    compile = process.find(record, opening="dynamo_start")
    if compile is None:
        return
    stack = process.stack(json_object(reader, record, record.body).get("stack"))
    user = first_user_frame(stack)
    row = compile.forward
    row.update(process.head(record, compile))
    row["stack"] = stack_json(stack, with_code=False)
    row["user_file"] = user.file if user else None
    row["user_line"] = user.line if user else None
    row["user_function"] = written_name(user.function) or None if user else None
    if stack:
        frame = stack[-1]
        row.setdefault("co_name", frame.function)
        row.setdefault("co_filename", frame.file)
        row.setdefault("co_firstlineno", frame.line)


def compilation_metrics(reader: Reader, record: Record) -> None:
    """One CompilationMetrics object: what a compile cost and how it ended.

    A backward that was compiled later has a key of its own, under the forward's id.
    """
    process = reader.process
    compile = process.find(record)
    found = record.told if isinstance(record.told, Metrics) else None
    if found is None or not settings.unchanged(process, found):
        envelope = decode(reader, record, record.head[1], METRICS[record.key])
        if compile is None or envelope is None:
            return
        numbers = found.sections if found else {}
        settings.metrics_settings(reader, record, envelope.metrics, numbers)
        found = found or metrics_of(envelope.metrics, numbers)
    if compile is None:
        return
    row, forward = found.row, found.is_forward
    row["metrics"] = True
    if record.key == "compilation_metrics" and forward:
        compile.closed = record.stamp
        first = not compile.forward
        compile.forward.update(row)
        if first:
            compile.forward.update(process.head(record, compile))
    elif compile.backward is None:
        compile.backward = process.head(record, compile) | row
    if (started := row.get("started_us")) and not process.clock.fixed:
        process.clock.observe(record.stamp, started)
    if row.get("cudagraph_skip_reason"):
        event = {"event": "skip", "reason": row["cudagraph_skip_reason"], "origin": "structured"}
        process.add("cudagraph_events", record, compile, event)


def dynamo_error(reader: Reader, record: Record) -> None:
    """Traceback of a failed compile: only that there is one; metrics carry type and reason."""
    compile = reader.process.find(record)
    if compile is not None:
        compile.failed = True


def finish(process: Process) -> None:
    """Make the rows of table ``compiles`` once the whole log is read."""
    rows = process.rows["compiles"]
    for compile in process.compiles.values():
        if compile.compile_id.frame_id is None and not compile.forward:
            continue  # compiled autograd before it has a frame: no compile yet
        event = {k: v for k, v in compile.dynamo_event.items() if v is not None}
        row = {
            "pass": process.pass_name,
            "rank": process.rank,
            "raw_file": process.raw_file,
            "raw_line": compile.line,
            "metrics": False,
            **event,
            **compile.forward,
            "compile_key": compile.key,
            "compile_id": compile.name,
            "pid": process.pid,
            "epoch": compile.epoch,
            "frame_id": compile.compile_id.frame_id,
            "frame_compile_id": compile.compile_id.frame_compile_id,
            "attempts": max(compile.attempts, default=0) + 1,
            "is_forward": True,
            "dynamic_symbols": compile.symbols,
        }
        if row.get("started_us") is None:
            row["started_us"] = compile.started_us or (compile.stamp_us and compile.stamp_us())
        forward = row | {"outcome": outcome(compile, row)}
        rows.append(forward)
        if compile.backward is not None:  # metrics leave the code object out there
            named = {name: forward.get(name) for name in (*_CODE, *_IDENTITY)}
            failed = compile.backward.get("fail_type") is not None
            ended = {"is_forward": False, "outcome": "failed" if failed else "ok", "attempts": 1}
            rows.append(named | compile.backward | ended)
    known: dict[tuple[int, int | None], Row] = {}
    logged_us: dict[tuple[int | None, int | None], float] = {}
    for row in rows:
        # A compile that only met the recompile limit names no code: others of its frame do.
        frame = (row["epoch"], row["frame_id"])
        if row.get("co_name"):
            known.setdefault(frame, row)
        elif row["frame_id"] is not None and (twin := known.get(frame)):
            row.update({column: twin.get(column) for column in _CODE})
        # torch adds up by frame and compile: over a forward and its backward, and over resets.
        total, ids = row.get("logging_us"), (row["frame_id"], row["frame_compile_id"])
        if total is not None:
            row["logging_us"] = max(0.0, total - logged_us.get(ids, 0.0))
            logged_us[ids] = total


def outcome(compile: Compile, row: Row) -> str:
    """How the compile ended, by torch's own fields; see the column in schema/compiler.py."""
    fail_type, reason = row.get("fail_type"), row.get("fail_reason") or ""
    known = row.get("metrics") or "has_guarded_code" in row or fail_type is not None
    if "recompile limit" in reason.lower() or "cache_size_limit reached" in reason:
        return "limit"
    if compile.breaks_skipped and fail_type in (None, "Unsupported"):
        return "skipped"
    if fail_type is not None:
        return "failed"
    if not known:
        if compile.failed:
            return "failed"
        return "exported" if compile.exported else "unfinished"
    if row.get("has_guarded_code") is False:
        return "skipped"
    return "ok" if row.get("graph_op_count") or compile.graphs else "empty"

"""Table runs: how each process of a pass began, what it ran on and how it ended."""

from __future__ import annotations

from typing import Any

from traceview.parse.collected.events import Process
from traceview.run import PassRecord

_ERROR_CHARACTERS = 4096
_ERROR_COLUMNS = ("type", "file", "line", "function", "stance")
_TORCH_COLUMNS = (
    "torch_version",
    "triton_version",
    "cuda_version",
    "driver_version",
    "device_count",
    "device_capability",
    "cpu_threads",
    "cpu_count",
)


def run_rows(record: PassRecord, processes: list[Process]) -> list[dict[str, Any]]:
    """One row a process; one from the manifest alone where no process lived to write an event."""
    if not processes:
        return [{"pass": record.name, "started_us": record.started_us, **_manifest_ending(record)}]
    rows = []
    for process in processes:
        began, torch = process.merged("process"), process.merged("torch")
        end, steady, error = process.merged("end"), process.merged("steady"), process.last("error")
        message, quiet = error.get("message"), steady.get("never_quiet")
        # Written when steps are steady; null where that never came.
        settings = [s for s in process.of("setting") if s.get("name") == "grad_enabled_steps"]
        grad_enabled = str(settings[-1].get("value")) if settings else None
        alone = len(processes) == 1
        ending = _manifest_ending(record) if alone else _own_ending(record, process)
        row = {
            "pass": record.name,
            "rank": process.rank,
            "pid": process.pid,
            "started_us": began.get("t", process.first_us),
            **ending,
            **{f"error_{name}": error.get(name) for name in _ERROR_COLUMNS},
            "error_message": message[:_ERROR_CHARACTERS] if isinstance(message, str) else None,
            "python_version": began.get("python"),
            "platform": began.get("platform"),
            "argv": began.get("argv"),
            "cwd": began.get("cwd"),
            **{name: torch.get(name) for name in _TORCH_COLUMNS},
            "device_name": torch.get("device_name", "cpu" if torch else None),
            # How far the plan came, from what the process still could write.
            "step_kind": end.get("step_kind", steady.get("step_kind")),
            "steps_seen": end.get("steps_seen", _steps_seen(process)),
            "quiet_after_step": None if quiet is True else steady.get("step"),
            "never_quiet": quiet,
            "plan_complete": any(done.get("complete", True) is True for done in process.of("done")),
            "user_stance": process.merged("stance").get("stance"),
            "dynamo_disabled": bool(process.of("disabled")),
            "grad_enabled_steps": {"True": True, "False": False}.get(grad_enabled or ""),
        }
        rows.append(row)
    return rows


def _steps_seen(process: Process) -> int | None:
    """Steps that events name, for a process killed before it could count them; null for none."""
    ends: list[int] = []
    for event in process.of("steps"):
        rows = event.get("rows")
        if isinstance(rows, list):
            firsts = (row[0] for row in rows if isinstance(row, list) and row)
            ends.extend(step + 1 for step in firsts if isinstance(step, int))
    for block in process.of("block"):
        first, steps = block.get("first_step"), block.get("steps")
        if isinstance(first, int) and isinstance(steps, int):
            ends.append(first + steps)
    return max(ends, default=None)


def _manifest_ending(record: PassRecord) -> dict[str, Any]:
    """What the parent saw: right for the only process, or for launcher and ranks as a whole."""
    ending = record.ending
    return {
        "wall_s": ending.wall_s,
        "exit_kind": ending.kind,
        "exit_code": ending.code,
        "exit_signal": ending.signal,
    }


def _own_ending(record: PassRecord, process: Process) -> dict[str, Any]:
    """One of several processes: orderly by its own word, else as the whole launch ended."""
    first, last = process.first_us, process.last_us
    lived_s = None if first is None or last is None else (last - first) / 1e6
    if not process.of("end"):
        return _manifest_ending(record) | {"wall_s": lived_s}
    stopped = process.merged("done").get("stopping") is True
    clean = record.ending.kind == "exit" and record.ending.code == 0
    return {
        "wall_s": lived_s,
        "exit_kind": "stopped" if stopped else "exit",
        "exit_code": 0 if clean else None,
        "exit_signal": None,
    }

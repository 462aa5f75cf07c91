"""Table runs: how each process of a pass began, what it ran on and how it ended."""

from __future__ import annotations

from typing import Any

from traceview.parse.collected.events import Process
from traceview.run import PassRecord

_ERROR_CHARACTERS = 4096


def run_rows(record: PassRecord, processes: list[Process]) -> list[dict[str, Any]]:
    """One row a process; one from the manifest alone where no process lived to write an event."""
    if not processes:
        return [{"pass": record.name, "started_us": record.started_us, **_manifest_ending(record)}]
    alone = len(processes) == 1
    return [_run(record, process, alone=alone) for process in processes]


def _run(record: PassRecord, process: Process, *, alone: bool) -> dict[str, Any]:
    began, torch = process.merged("process"), process.merged("torch")
    return {
        "pass": record.name,
        "rank": process.rank,
        "pid": process.pid,
        "started_us": began.get("t", process.first_us),
        **(_manifest_ending(record) if alone else _own_ending(record, process)),
        **_error(process),
        "python_version": began.get("python"),
        "platform": began.get("platform"),
        "argv": began.get("argv"),
        "cwd": began.get("cwd"),
        "torch_version": torch.get("torch_version"),
        "triton_version": torch.get("triton_version"),
        "cuda_version": torch.get("cuda_version"),
        "driver_version": torch.get("driver_version"),
        "device_name": torch.get("device_name", "cpu" if torch else None),
        "device_count": torch.get("device_count"),
        "device_capability": torch.get("device_capability"),
        "cpu_threads": torch.get("cpu_threads"),
        "cpu_count": torch.get("cpu_count"),
        **_progress(process),
    }


def _progress(process: Process) -> dict[str, Any]:
    """How far the plan came, from what the process still could write."""
    end, steady = process.merged("end"), process.merged("steady")
    quiet = steady.get("never_quiet")
    return {
        "step_kind": end.get("step_kind", steady.get("step_kind")),
        "steps_seen": end.get("steps_seen", _steps_seen(process)),
        "quiet_after_step": None if quiet is True else steady.get("step"),
        "never_quiet": quiet,
        "plan_complete": any(done.get("complete", True) is True for done in process.of("done")),
        "user_stance": process.merged("stance").get("stance"),
        "dynamo_disabled": bool(process.of("disabled")),
        "grad_enabled_steps": _grad_enabled(process),
    }


def _grad_enabled(process: Process) -> bool | None:
    """Written as a setting when steps are steady; null where that never came."""
    for setting in reversed(process.of("setting")):
        if setting.get("name") == "grad_enabled_steps":
            return {"True": True, "False": False}.get(str(setting.get("value")))
    return None


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
    if not process.of("end"):
        return _manifest_ending(record) | {"wall_s": _lived_s(process)}
    stopped = process.merged("done").get("stopping") is True
    clean = record.ending.kind == "exit" and record.ending.code == 0
    return {
        "wall_s": _lived_s(process),
        "exit_kind": "stopped" if stopped else "exit",
        "exit_code": 0 if clean else None,
        "exit_signal": None,
    }


def _lived_s(process: Process) -> float | None:
    """Seconds from the first event to the last."""
    if process.first_us is None or process.last_us is None:
        return None
    return (process.last_us - process.first_us) / 1e6


def _error(process: Process) -> dict[str, Any]:
    error = process.last("error")
    message = error.get("message")
    return {
        "error_type": error.get("type"),
        "error_message": message[:_ERROR_CHARACTERS] if isinstance(message, str) else None,
        "error_file": error.get("file"),
        "error_line": error.get("line"),
        "error_function": error.get("function"),
        "error_stance": error.get("stance"),
    }

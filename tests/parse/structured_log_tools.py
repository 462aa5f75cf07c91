"""Structured logs for tests: the recorded ones, and records written as torch writes them."""

import gzip
import json
from hashlib import md5
from pathlib import Path

from traceview.parse.damage import Damage
from traceview.parse.merge import gathered
from traceview.parse.structured import read_path
from traceview.tables import Tables

LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "structured"
PREFIX = "V1120 20:09:53.524000 5956 torch/_logging/_internal.py:1328] "


def recorded(name):
    """The bytes of a recorded log."""
    return gzip.decompress((LOGS / f"{name}.log.gz").read_bytes())


def record(key, value, *, payload=None, prefix=PREFIX, **context):
    """One record as torch writes it."""
    envelope = {key: value, **context}
    if payload is not None:
        envelope["has_payload"] = md5(payload.encode()).hexdigest()
    line = prefix + json.dumps(envelope) + "\n"
    if payload is not None:
        line += "\n".join("\t" + text for text in payload.split("\n")) + "\n"
    return line.encode()


def artifact(name, payload, encoding="string", **context):
    return record("artifact", {"name": name, "encoding": encoding}, payload=payload, **context)


def at(frame, compile=0, attempt=0):
    """Context keys of compile ``frame/compile``."""
    return {"frame_id": frame, "frame_compile_id": compile, "attempt": attempt}


def read_file(path, damage, name=None):
    """Tables of the log at ``path``; ``name`` is what ``raw_file`` says."""
    return gathered(read_path(path, name or path.name, damage))


def read(tmp_path, log, name="dedicated_log_torch_trace_x.log"):
    """Tables and damage of ``log`` (bytes)."""
    path = tmp_path / name
    path.write_bytes(log)
    damage = Damage()
    return Tables(read_file(path, damage)), damage


def kinds_of(damage):
    """Damage as {kind: times}."""
    frame = damage.frame("logs")
    return dict(zip(frame["kind"], frame["times"], strict=True))

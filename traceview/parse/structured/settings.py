"""Versions and settings that a process logs: table ``configs``, each distinct set once.

CompilationMetrics repeat three configurations of some 30 KB in every compile, as JSON in strings;
they are compared as bytes and decoded only where they differ from the compile before.
"""

from __future__ import annotations

import json

import msgspec

from traceview.parse.cutting import Record
from traceview.parse.structured.decode import json_object
from traceview.parse.structured.state import Reader

SECTIONS = ("dynamo_config", "inductor_config", "functorch_config", "compiler_config")
#: Metrics fields that are versions, and the names they get.
VERSIONS = {
    "pytorch_version": "torch",
    "python_version": "python",
    "cuda_version": "cuda",
    "triton_version": "triton",
}
_NOTHING = msgspec.Raw(b"null")

#: Fields for the struct that CompilationMetrics are decoded into.
FIELDS = tuple((name, msgspec.Raw, _NOTHING) for name in (*SECTIONS, *VERSIONS))


def metrics_settings(reader: Reader, record: Record, metrics: msgspec.Struct) -> None:
    """The configurations and versions of one CompilationMetrics object, where they are new."""
    for section in SECTIONS:
        raw = bytes(getattr(metrics, section))
        if raw != b"null":
            keep_changed(reader, record, section, raw)
    found = {name: _text(bytes(getattr(metrics, field))) for field, name in VERSIONS.items()}
    known = {name: value for name, value in found.items() if value}
    # The first line of Python's version is enough; the rest is its compiler.
    if "python" in known:
        known["python"] = known["python"].split(" ", 1)[0]
    _versions(reader, record, known)


def torch_version(reader: Reader, record: Record) -> None:
    """``{"pytorch_version", "commit", "oss"}``: the second record of a log, since torch 2.12."""
    found = json_object(reader, record, record.payload)
    names = {"pytorch_version": "torch", "commit": "torch_commit"}
    _versions(reader, record, {
        name: found[key] for key, name in names.items() if isinstance(found.get(key), str)
    })  # fmt: skip


def keep_changed(reader: Reader, record: Record, section: str, raw: bytes) -> None:
    """Keep a set, JSON or JSON in a string, unless it is the same as the process logged before."""
    if reader.process.configs.get(section) != raw:
        reader.process.configs[section] = raw
        _keep(reader, record, section, _text(raw))


def _versions(reader: Reader, record: Record, known: dict[str, str]) -> None:
    versions = reader.process.versions
    if any(versions.get(name) != value for name, value in known.items()):
        versions.update(known)
        _keep(reader, record, "versions", json.dumps(versions, sort_keys=True))


def _keep(reader: Reader, record: Record, section: str, settings: str | None) -> None:
    if settings is None:
        return
    row = {"pid": reader.process.pid, "section": section, "settings": settings}
    reader.process.add("configs", record, reader.process.find(record), row)


def _text(raw: bytes) -> str | None:
    """A JSON string's text; an object as it is; None for what is neither."""
    if raw[:1] == b"{":
        return raw.decode("utf-8", "replace")
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, str) and value else None

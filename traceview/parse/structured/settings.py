"""Versions and settings that a process logs: table ``configs``, each distinct set once.

CompilationMetrics repeat three configurations of some 30 KB in every compile, as JSON in strings;
they are compared as bytes and decoded only where they differ from the compile before.
"""

from __future__ import annotations

import json

import msgspec

from traceview.parse.cutting import Record
from traceview.parse.payloads.metrics import Metrics, sections_of, text_of, versions_of
from traceview.parse.structured.decode import json_object
from traceview.parse.structured.state import Process, Reader


def unchanged(process: Process, found: Metrics) -> bool:
    """Whether all configurations and versions are those that the process logged before."""
    numbers, versions = process.config_numbers, process.versions
    return all(numbers.get(name) == number for name, number in found.sections.items()) and all(
        versions.get(name) == value for name, value in found.versions.items()
    )


def metrics_settings(
    reader: Reader, record: Record, fields: msgspec.Struct, numbers: dict[str, int]
) -> None:
    """The configurations and versions of one CompilationMetrics object, where they are new.

    ``numbers`` are those that the process which cuts gave the configurations, if it did.
    """
    known = reader.process.config_numbers
    for section, raw in sections_of(fields).items():
        keep_changed(reader, record, section, raw)
        known.pop(section, None)
    known.update(numbers)
    _versions(reader, record, versions_of(fields))


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
        _keep(reader, record, section, text_of(raw))


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

"""Versions, settings and job size that a process logs: table ``configs``, each distinct set once.

CompilationMetrics repeat three configurations of some 30 KB in every compile, as JSON in strings;
they are compared as bytes and decoded only where they differ from the compile before.
"""

from __future__ import annotations

import json
import re

import msgspec

from traceview.parse.cutting import Record
from traceview.parse.payloads.metrics import Metrics, json_text, sections_of, versions_of
from traceview.parse.structured.decode import json_object, text_of
from traceview.parse.structured.state import Process, Reader
from traceview.torchtext.fx import default_group_size


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
    known = {name: found[key] for key, name in names.items() if isinstance(found.get(key), str)}
    _versions(reader, record, known)


def keep_changed(reader: Reader, record: Record, section: str, raw: bytes) -> None:
    """Keep a set, JSON or JSON in a string, unless it is the same as the process logged before."""
    if reader.process.configs.get(section) != raw:
        reader.process.configs[section] = raw
        _keep(reader, record, section, json_text(raw))


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


# How many ranks the job has, by the records that carry it: section ``world``. torch names process
# groups by a counter that starts again with each default group, so ``'0'`` is the default group
# (``_process_group_name`` in torch/distributed/distributed_c10d.py): its size is the job's. Another
# group is only a part of it.

#: torch/_inductor/fx_passes: node_runtime_estimation.py and spmd_check.py.
WORLD_ARTIFACTS = re.compile(r"fx_collectives_\w+|inductor_spmd_graph_mismatch")

_WORLD_SIZE = re.compile(r"\A# World size: (\d{1,7})$|, world_size=(\d{1,7})$", re.MULTILINE)
#: A runnable script makes the groups that its graph names, in its last lines.
_MAKES_GROUPS = "setup_fake_process_groups({"
_DEFAULT_GROUP = re.compile(r"'0': \{'size': (\d{1,7}),")


def world_size(reader: Reader, record: Record) -> None:
    """An artifact that gives the number itself; 1 where there was no default group yet."""
    found = _WORLD_SIZE.search(text_of(reader, record))
    if found is not None and (size := int(found[1] or found[2])) > 1:
        _keep_size(reader, record, size)


def world_size_of_graph(reader: Reader, record: Record, kind: str, text: str) -> None:
    """The default group, where a graph's collectives or its runnable script name it."""
    size = None
    if kind == "fx_graph_runnable" and (start := text.rfind(_MAKES_GROUPS)) >= 0:
        found = _DEFAULT_GROUP.search(text, start, text.find("\n", start))
        size = int(found[1]) if found else None
    elif kind == "post_grad":
        size = default_group_size(text)
    if size is not None:
        _keep_size(reader, record, size)


def _keep_size(reader: Reader, record: Record, size: int) -> None:
    keep_changed(reader, record, "world", b'{"world_size": %d}' % size)

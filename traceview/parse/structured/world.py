"""How many ranks the job has, by the records that carry it: section ``world`` of table ``configs``.

torch names process groups by a counter that begins anew with each default group, so ``'0'`` is the
default group (``_process_group_name`` in torch/distributed/distributed_c10d.py): its size is the
job's. The size of another group is no more than a part of it.
"""

from __future__ import annotations

import re

from traceview.parse.cutting import Record
from traceview.parse.structured.decode import text_of
from traceview.parse.structured.settings import keep_changed
from traceview.parse.structured.state import Reader
from traceview.torchtext.fx import default_group_size

#: torch/_inductor/fx_passes: node_runtime_estimation.py and spmd_check.py.
ARTIFACTS = re.compile(r"fx_collectives_\w+|inductor_spmd_graph_mismatch")

_TOLD = re.compile(r"\A# World size: (\d{1,7})$|, world_size=(\d{1,7})$", re.MULTILINE)
#: A runnable script makes the groups that its graph names, in its last lines.
_MAKES_GROUPS = "setup_fake_process_groups({"
_DEFAULT_GROUP = re.compile(r"'0': \{'size': (\d{1,7}),")


def told(reader: Reader, record: Record) -> None:
    """An artifact that gives the number itself; 1 where there was no default group yet."""
    found = _TOLD.search(text_of(reader, record))
    if found is not None and (size := int(found[1] or found[2])) > 1:
        _keep(reader, record, size)


def of_graph(reader: Reader, record: Record, kind: str, text: str) -> None:
    """The default group, where a graph's collectives or its runnable script name it."""
    size = None
    if kind == "fx_graph_runnable" and (start := text.rfind(_MAKES_GROUPS)) >= 0:
        found = _DEFAULT_GROUP.search(text, start, text.find("\n", start))
        size = int(found[1]) if found else None
    elif kind == "post_grad":
        size = default_group_size(text)
    if size is not None:
        _keep(reader, record, size)


def _keep(reader: Reader, record: Record, size: int) -> None:
    keep_changed(reader, record, "world", b'{"world_size": %d}' % size)

"""inductor_metrics: the bytes that Inductor's scheduler estimates for every kernel of a graph.

``torch/_inductor/compile_fx.py`` writes, once a graph (``count_bytes`` in graph.py):

    Graph Metrics:
    {'num_bytes_accessed': 33587200, 'nodes_num_elem': [(SchedulerNode(name='op0'), 8396800), …],
     'node_runtimes': [(SchedulerNode(name='op0'), 0.008), …]}

``nodes_num_elem`` are bytes // 4, whatever the dtype.
"""

from __future__ import annotations

import re

from traceview.parse.messages import Message
from traceview.parse.textlogs.sink import Sink

_TOTAL = re.compile(r"^\{'num_bytes_accessed': (\d{1,18}), 'nodes_num_elem': \[")
_NODE = re.compile(r"\((\w{1,60})\((?:name='|nodes=)([\w,]{1,100000})'?\), (\d{1,18})\)")
_ELEMENT_BYTES = 4


class InductorMetrics:
    """Rows of inductor_metrics."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def message(self, message: Message) -> None:
        for offset, line in enumerate(message.lines):
            total = _TOTAL.match(line)
            if total is None:
                continue
            nodes = _NODE.findall(line[: line.find("'node_runtimes'")])
            self._sink.add(
                "inductor_metrics",
                message,
                offset,
                num_bytes_accessed=int(total[1]),
                nodes=[name for _, name, _ in nodes],
                node_kinds=[kind for kind, _, _ in nodes],
                node_bytes=[_ELEMENT_BYTES * int(count) for _, _, count in nodes],
            )

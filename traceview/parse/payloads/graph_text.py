"""The text of a graph: the user's lines and the operators of its nodes.

Dynamo writes ``# File: /p/s.py:3 in forward, code: …`` above the nodes that came from there, up to
the next empty line, and the graphs made of that one keep it.
"""

from __future__ import annotations

import re

import msgspec

from traceview.parse.frames import FILE_COMMENT, FILE_PLACE, is_user_file

_PLACE = re.compile(FILE_PLACE)
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")
_NODE = re.compile(r"\n +(?:\w+ \S{1,2}= [^;\n]+;  )?(\w+)(?: *:[^=\n]*)? = ")
_POST_NODE = re.compile(r"\n +(\w+)(?: *:[^=\n]*)? = torch\.ops\.(\w+\.\w+)")


class NodeLines(msgspec.Struct, array_like=True, tag="lines"):
    """Nodes of a graph that come from the user's own code: the place of each, places once."""

    nodes: dict[str, int] = {}
    places: list[str] = []

    def place(self, node: str) -> str | None:
        """``file:line`` of ``node``."""
        at = self.nodes.get(node)
        return None if at is None else self.places[at]


def node_lines(graph: str) -> NodeLines:
    """The user's lines that the comments of a graph's text give its nodes."""
    found = NodeLines()
    numbers: dict[str, int] = {}
    before, *parts = graph.split(FILE_COMMENT)
    at: int | None = None
    for part in parts:
        begins = not before[before.rfind("\n") + 1 :].strip()
        if begins and (named := _PLACE.match(part)):
            own = is_user_file(named["file"])
            place = f"{named['file']}:{int(named['line'])}"
            at = numbers.setdefault(place, len(numbers)) if own else None
        if at is not None:
            end = _EMPTY_LINE.search(part)
            nodes = _NODE.findall(part, 0, end.start() if end else len(part))
            found.nodes.update(dict.fromkeys(nodes, at))
            at = None if end else at
        before = part
    found.places.extend(numbers)
    return found


def post_ops(graph: str) -> dict[str, str]:
    """Node name to aten operator, in graph order, from the text of a post-grad graph."""
    return dict(_POST_NODE.findall(f"\n{graph}"))

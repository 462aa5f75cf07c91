"""The text of a graph: the user's lines and the operators of its nodes.

Dynamo writes ``# File: /p/s.py:3 in forward, code: …`` above the nodes that came from there, up to
the next empty line, and the graphs made of that one keep it.
"""

from __future__ import annotations

import re

import msgspec

from traceview.torchtext.frames import FILE_COMMENT, is_user_file

#: Alone, with what is freed before it on the same line, or a comment, or an empty line.
_LINE = re.compile(
    rf"\n *(?:(?:\w+ \S{{1,2}}= [^;\n]+;  )?(?P<node>\w+)(?: *:[^=\n]*)? = "
    rf"|{FILE_COMMENT}(?P<place>.+?:\d{{1,9}}) in |(?=\n))"
)
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
    nodes, places = found.nodes, found.places
    numbers: dict[str, int | None] = {}
    at: int | None = None
    for node, place in _LINE.findall(f"\n{graph}"):
        if node:
            if at is not None:
                nodes[node] = at
        elif not place:
            at = None
        elif place in numbers:
            at = numbers[place]
        else:
            file, _, line = place.rpartition(":")
            at = numbers[place] = len(places) if is_user_file(file) else None
            if at is not None:
                places.append(f"{file}:{int(line)}")
    return found


def post_ops(graph: str) -> dict[str, str]:
    """Node name to aten operator, in graph order, from the text of a post-grad graph."""
    return dict(_POST_NODE.findall(f"\n{graph}"))

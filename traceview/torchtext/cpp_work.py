"""How the instructions of a generated C++ kernel divide, roughly, read from its source.

A line of a loop's body counts once a turn, whether the turn is an element or a vector, and a
function or a random number counts as several. A loop that fills a buffer element by element
inside a vector loop is one of its own. The shapes are those of torch/_inductor/codegen/cpp.py,
torch 2.6 to 2.13:

    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(96L); x1+=…(16L))
        for (long x1_inner = 0; x1_inner < static_cast<int64_t>(16); x1_inner++)
            tmpbuf[x1_inner] = in_ptr0[static_cast<int64_t>(tmp19[x1_inner] + 6L*tmp10)];
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import ceil, prod

from traceview.torchtext.cpp_loops import FUNCTION, LOOP, RANDOM_NUMBER, RANGE, VECTOR_FUNCTION
from traceview.torchtext.kernel_source import INSTRUCTIONS_EACH

_BUFFER_LOOP = re.compile(
    r"for\s*\(\s*(?:long|int64_t) (?P<name>\w+) = 0; (?P=name) < "
    r"(?:static_cast<int64_t>\()?(?P<turns>\d{1,4})"
)
_OPERATION = re.compile(r"^(?!\s*for\b).* = .*;|\.store\(|TORCH_CHECK")
#: Read at a place that was calculated from data.
_LOOKED_UP = re.compile(r"_ptr\d+\[static_cast<int64_t>\([^\n\]]{0,500}\btmp\d+")
_DEEPEST = 64


@dataclass(slots=True)
class Work:
    """Instructions of one run of a kernel, roughly.

    ``single``: those that are done one element at a time; ``looked_up``: elements that are read
    at places calculated from data; ``looking_up``: instructions in nests of loops that do so;
    ``functions``: evaluations of each, one element or one vector at a time; ``by_size``:
    instructions by the elements that the loops around them go through. ``short``: instructions in
    loops of vectors that are no longer than a part of one, by their elements and the vector's.
    """

    instructions: int = 0
    single: int = 0
    looked_up: int = 0
    looking_up: int = 0
    functions: dict[str, int] = field(default_factory=dict)
    by_size: dict[int, int] = field(default_factory=dict)
    short: dict[tuple[int, int], int] = field(default_factory=dict)

    def share_of_loops(self, elements: int) -> float:
        """The part of the instructions, 0 to 1, in loops through at least half of ``elements``."""
        large = sum(count for size, count in self.by_size.items() if 2 * size >= elements)
        return large / self.instructions


def work_of(source: str) -> Work | None:
    """The work of C++ ``source``; None where the size of a loop is a symbol, or it has no loop."""
    found = Work()
    scopes: list[tuple[int, str, int, int]] = []  # depth, variable, turns, elements
    steps: dict[str, int] = {}
    depth = 0
    nest = [0, 0]  # instructions and look-ups before the outermost loop that is open
    for line in source.splitlines():
        if len(scopes) < _DEEPEST:
            if loop := LOOP.search(line):
                if loop["high"] is None:
                    return None
                steps[loop["name"]] = int(loop["step"] or 1)
                size = int(loop["high"]) - int(loop["low"])
                scopes.append((depth, loop["name"], ceil(size / steps[loop["name"]]), size))
            elif inner := _BUFFER_LOOP.search(line):
                scopes.append((depth, inner["name"], int(inner["turns"]), 1))
            else:
                for match in RANGE.finditer(line):
                    size = int(match["high"]) - int(match["low"])
                    turns = ceil(size / steps.get(match["name"], 1))
                    scopes.append((depth, match["name"], turns, size))
        inside = {name: turns for _, name, turns, _ in scopes}
        if inside and _OPERATION.search(line):
            times = prod(inside.values())
            called = RANDOM_NUMBER.search(line) or FUNCTION.search(line)
            vector = VECTOR_FUNCTION.search(line)
            each = INSTRUCTIONS_EACH if called or vector else 1
            found.instructions += times * each
            size = prod({name: size for _, name, _, size in scopes}.values())
            found.by_size[size] = found.by_size.get(size, 0) + times * each
            innermost = next(reversed(inside))
            width, length = steps.get(innermost, 1), scopes[-1][3]
            # The innermost of the loops around it takes one element a turn.
            single = width == 1
            if 2 * length <= width and scopes[-1][1] == innermost:
                short = length, width
                found.short[short] = found.short.get(short, 0) + times * each
            if "Vectorized" not in line and not vector and single:
                found.single += times * each
            if _LOOKED_UP.search(line):
                found.looked_up += times
            if function := called or vector:
                name = function[1]
                found.functions[name] = found.functions.get(name, 0) + times
        for sign in re.findall(r"[{}]", line):
            depth += 1 if sign == "{" else -1
            if sign == "}":
                scopes = [scope for scope in scopes if scope[0] < depth]
        if not scopes and found.instructions > nest[0]:
            if found.looked_up > nest[1]:
                found.looking_up += found.instructions - nest[0]
            nest = [found.instructions, found.looked_up]
    return found if found.instructions else None

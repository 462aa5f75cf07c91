"""How fast the script's own loops go: what two versions of a script have in common.

What counts as a step may change with a patch, as it is a compiled callable's call. The loops of the
main program stay. A call at the begin of each iteration counts; after some seconds in which nothing
was compiled, the milliseconds of an iteration are written, and the script ends.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

NAME = "__traceview_tick__"
#: Looks are a tenth of the time apart since something was compiled, and no closer or wider than:
_CLOSEST_S, _WIDEST_S = 0.01, 0.1
#: A process is ended at the latest after this many times its seconds. If compiling never pauses,
#: only after this many looks, too; then the second half of its time counts.
_MOST, _MOST_LOOKS = 6, 20
#: Part of the seconds that is enough where the process ends before.
_LEAST = 0.02
_FEWEST = 3
Loop = ast.For | ast.While


#: Of each loop the iterations that have begun, and when the last one did.
State = tuple[list[int], list[float]]


class Ticks:
    """The loops of one process."""

    def __init__(self, file: Path, seconds: float) -> None:
        self._file, self._seconds = file, seconds
        self._loops: list[str] = []
        self._counts: list[int] = []
        self._began: list[float] = []
        self._last: list[float] = []
        self._next = self._first = self._calm = 0.0
        self._compiles = -1
        self._seen: list[tuple[float, State]] = []
        self._rest = 0

    def put_into(self, tree: ast.Module) -> None:
        """Let the loops of the module, and of functions that it calls itself, count.

        Others may be compiled. Lines stay as they are.
        """
        called = {
            node.func.id
            for each in tree.body
            if not isinstance(each, (ast.FunctionDef, ast.ClassDef))
            for node in ast.walk(each)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        plain = [
            each
            for each in tree.body
            if not isinstance(each, (ast.FunctionDef, ast.ClassDef))
            or (
                (isinstance(each, ast.FunctionDef) and each.name in called)
                and not each.decorator_list
            )
        ]
        seen: Counter[str] = Counter()
        for loop in _loops(plain):
            text = (
                f"while {ast.unparse(loop.test)}"
                if isinstance(loop, ast.While)
                else (f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}")
            )
            seen[text] += 1
            tick = ast.parse(f"{NAME}({len(self._loops)})").body[0]
            for node in ast.walk(tick):
                ast.copy_location(node, loop.body[0])
            loop.body.insert(0, tick)
            self._loops.append(f"{text} {seen[text]}")
            self._counts.append(0)
            self._began.append(0.0)
            self._last.append(0.0)

    def __call__(self, loop: int) -> None:
        """An iteration begins. May raise SystemExit(0): enough is known."""
        self._counts[loop] += 1
        now = self._last[loop] = time.perf_counter()
        self._began[loop] = self._began[loop] or now
        if now >= self._next:
            self._look()

    def _look(self) -> None:
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if cuda is not None and cuda.is_initialized():
            cuda.synchronize()
        now = time.perf_counter()
        self._first = self._first or now
        self._seen.append((now, self._state))
        if (compiles := _compiles()) != self._compiles:
            self._compiles, self._rest = compiles, len(self._seen) - 1
        else:
            self._calm = self._calm or now
        since = self._seen[self._rest]
        self._next = now + min(_WIDEST_S, max(_CLOSEST_S, (now - since[0]) / 10))
        over = now > (self._calm or self._first) + _MOST * self._seconds
        over &= self._calm > 0 or len(self._seen) > _MOST_LOOKS
        if over:  # it is never at rest
            half = (self._first + now) / 2
            since = next(each for each in self._seen if each[0] >= half)
        if (now - since[0] >= self._seconds or over) and self._write(since):
            raise SystemExit(0)

    def close(self) -> None:
        """What is known at the process's end, if something else ended it.

        Where compiling went on in the second half of the iterations, all of that counts.
        """
        if self._seen and not self._file.exists():
            now, counts = self._seen[-1]
            half = next(
                n for n, (_, each) in enumerate(self._seen) if 2 * sum(each[0]) >= sum(counts[0])
            )
            since = self._seen[min(self._rest, half)]
            self._counts, self._last = counts
            if now - since[0] >= _LEAST * self._seconds:
                self._write(since)

    @property
    def _state(self) -> State:
        return list(self._counts), list(self._last)

    def _write(self, since: tuple[float, State]) -> bool:
        """From its iteration at ``since``, or its first one, to its last one, each loop alone."""
        found = {}
        before, at = since[1]
        for loop, name in enumerate(self._loops):
            count = self._counts[loop] - max(1, before[loop])
            if count >= _FEWEST:
                seconds = self._last[loop] - (at[loop] or self._began[loop])
                found[name] = {"ms": 1e3 * seconds / count, "count": count}
        if found:
            scratch = self._file.with_suffix(".part")
            scratch.touch(0o600)
            scratch.write_text(json.dumps(found), encoding="utf-8")
            scratch.replace(self._file)
        return bool(found)


def _loops(nodes: list[ast.stmt]) -> Iterator[Loop]:
    """Loops in them, not in functions or classes within."""
    for node in nodes:
        if isinstance(node, (ast.For, ast.While)):
            yield node
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(node, name, [])
            yield from _loops(
                [each for each in inner if not isinstance(each, (ast.FunctionDef, ast.ClassDef))]
            )


def _compiles() -> int:
    """The number of frames and graphs that Dynamo has handled."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None) or {}
    return sum(sum(counters[name].values()) for name in ("frames", "stats") if name in counters)

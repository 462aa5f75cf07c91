"""Autotuning tables on stderr (``torch/_inductor/select_algorithm.py``, ``log_results``).

    Autotune Choices Stats:                                 (from 2.8)
    {"num_choices": 2, "best_kernel": "triton_mm_4", "best_time": 0.0323…, …}
    AUTOTUNE mm(2048x4096, 4096x1024)
    strides: [4096, 1], [1024, 1]
    dtypes: torch.float16, torch.float16
      triton_mm_4 0.0324 ms 100.0% ACC_TYPE='tl.float32', …
      mm 0.0440 ms 73.5%
    SubProcess AUTOTUNE benchmarking takes 0.36 seconds and 4.67 seconds precompiling for 2 choices

The lines have no prefix. Other processes' lines may stand between them.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from traceview.json_errors import NOT_JSON
from traceview.parse.damage import Damage
from traceview.parse.messages.shapes import Foreign, clean
from traceview.parse.textlogs.sink import RawLine, Row, Sink
from traceview.torchtext.autotuning import backend_of, best_choices

_HEAD = re.compile(r"(?:^|\s)AUTOTUNE (?P<op>[\w.:]{1,200})\((?P<shapes>.*)\)\s*$")
_CHOICE = re.compile(
    r"^  (?P<choice>\S{1,500}) (?P<time>\d+\.\d+|inf|nan) ms "
    r"(?:\d+\.?\d*%|inf%|nan%|<DIVIDED BY ZERO ERROR>) ?(?P<details>.*)$"
)
_TAIL = re.compile(
    r"^(?:SingleProcess|SubProcess) AUTOTUNE benchmarking takes (?P<benchmark>\d+\.\d+) seconds"
    r"(?: and (?P<precompile>\d+\.\d+) seconds precompiling)?"
)
_STATS = "Autotune Choices Stats:"
CHOICES_PER_TABLE = 10_000


class Autotune:
    """Rows of autotune_choices from raw lines of stderr, in the order of torch's ranking."""

    def __init__(self, sink: Sink, damage: Damage) -> None:
        self._sink = sink
        self._damage = damage
        self._tables = 0
        self._rows: list[Row] = []
        self._head: Row | None = None
        self._stats: dict[str, Any] | None = None
        self._stats_next = False
        #: The lines that are being read: they tell which message began last.
        self.after: Foreign | None = None

    @property
    def open(self) -> bool:
        """Whether the next line may belong to a table."""
        return self._stats_next or self._head is not None

    def line(self, raw: RawLine) -> None:
        """Read one line; cheap outside a table."""
        if self._stats_next:
            self._stats_next = False
            try:
                stats = msgspec.json.decode(raw.data)
            except NOT_JSON:
                self._damage.count(self._sink.raw_file, "bad_json", raw.number, clean(raw.data))
                stats = None
            self._stats = {**stats, "line": raw.number} if isinstance(stats, dict) else None
        elif b"utotune Choices Stats:" in raw.data and clean(raw.data).endswith(_STATS):
            self.end()
            self._stats_next = True
        elif b"AUTOTUNE " in raw.data:
            self._title(clean(raw.data))
        elif self._head is not None:
            self._body(clean(raw.data), raw.number)

    def end(self) -> None:
        """The open table is complete; statistics without a table make one of their own."""
        if self._head is None and self._stats is not None:
            head, line = self._begin(), self._stats["line"]
            for row in best_choices(self._stats):
                if row["time_ms"] is not None:
                    self._sink.raw("autotune_choices", line, **head, **row)
        self._head, self._rows, self._stats = None, [], None

    def _title(self, text: str) -> None:
        head, tail = _HEAD.search(text), _TAIL.match(text)
        if head is not None:
            if self._head is not None:
                self.end()
            self._head = {**self._begin(), "op": head["op"], "shapes": head["shapes"]}
        elif tail is not None and self._head is not None:
            precompile = tail["precompile"]
            for row in self._rows:
                row["benchmark_s"] = float(tail["benchmark"])
                row["precompile_s"] = float(precompile) if precompile else None
            self.end()

    def _body(self, text: str, number: int) -> None:
        assert self._head is not None
        choice = _CHOICE.match(text)
        if choice is not None:
            if len(self._rows) >= CHOICES_PER_TABLE:
                return
            time = float(choice["time"])
            best = not self._rows
            stats = self._stats or {}
            exact = stats.get("best_time")
            if best and isinstance(exact, float) and stats.get("best_kernel") == choice["choice"]:
                time = exact  # the table rounds to 0.1 µs
            row = {
                **self._head,
                "choice": choice["choice"],
                "backend": backend_of(choice["choice"]),
                "time_ms": time if math.isfinite(time) else None,
                "is_best": best,
                "details": choice["details"].strip() or None,
            }
            self._rows.append(self._sink.raw("autotune_choices", number, **row))
        elif text.startswith("strides: "):
            self._head["strides"] = text.removeprefix("strides: ")
        elif text.startswith("dtypes: "):
            self._head["dtypes"] = text.removeprefix("dtypes: ")

    def _begin(self) -> Row:
        """Head columns of a new table."""
        message = self.after.message if self.after else None
        if message is not None and not message.source.startswith("torch/_inductor/"):
            message = None
        name = self._sink.name(message) if message else None
        self._tables += 1
        return {
            "rank": self._sink.rank(message) if message else None,
            "compile_key": name.compile_key if name else None,
            "compile_id": name.compile_id if name else None,
            "table_index": self._tables - 1,
        }

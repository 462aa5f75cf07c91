"""Every outermost call of a service as its users meet it: its time, its shapes, what it compiled.

Stands in for the plan's `Listener`: nothing is switched or profiled, and the process stays in one
stance. What is kept is bounded: after a number of calls the script is stopped.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from .clock import gpu_in_use
from .driver import Driver, Parts
from .gate import Opened
from .memory import STATUS, proc_bytes
from .state import FOREVER, Gate, Region
from .taken import WITHIN, names_of, sizes_of

MOST_CALLS = 100_000
MOST_SHAPES = 1000  # of one region that have numbers of their own
MOST_WAYS = 64
OTHERS = -1
_DEPTH = 12  # stack frames that tell one way to a call from another
_PENDING = 64  # calls whose device time may be outstanding
_SHOWN_S = 1.0
#: Loggers of torch that warn of a recompile limit, and how its setting has been called.
_LIMIT_LOGGERS = ("torch._dynamo.convert_frame", "torch._dynamo")
_LIMITS = ("recompile_limit", "cache_size_limit")
_SETTINGS = (
    *("suppress_errors", "error_on_recompile", "recompile_limit", "cache_size_limit"),
    *("accumulated_recompile_limit", "fail_on_recompile_limit_hit", "disable"),
)
_COUNTERS = {
    "inductor": ("fxgraph_cache_hit", "fxgraph_cache_miss", "fxgraph_cache_bypass"),
    "aot_autograd": ("autograd_cache_hit", "autograd_cache_miss", "autograd_cache_bypass"),
}


class Serving:
    """Writes ``served_shape``, ``served_way``, ``served`` (rows), and one ``served_end``."""

    def __init__(self, parts: Parts, driver: Driver, calls: int, seconds: float) -> None:
        self._parts = parts
        self._driver = driver
        self._most = min(calls, MOST_CALLS)
        self._seconds = seconds
        self._calls = 0
        self._indices: dict[int, int] = {}
        self._shapes: dict[int, dict[tuple[Any, ...], int]] = {}
        self._ways: dict[tuple[int, ...], int] = {}
        self._given: tuple[int, int] = OTHERS, OTHERS
        self._pending: deque[tuple[Region, list[Any], Any, Any]] = deque()
        self._began_s = self._shown_s = self._compiling_s = 0.0
        self._ended = self._device = False
        self._limit = _LimitHits()

    # -- what gates report ------------------------------------------------------------------------

    def before(self, gate: Gate, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Opened | None:
        region, control = gate.region, self._parts.control
        if control.off:
            region.grant(FOREVER)
            return None
        now = time.monotonic()
        if not self._calls:
            self._began_s = now
            self._limit.listen()
        enough = self._calls >= self._most
        served_s = now - self._began_s - self._compiling_s
        if self._ended or enough or served_s >= self._seconds:
            self._stop("calls" if enough else "seconds")
            return None
        self._calls += 1
        if now - self._shown_s >= _SHOWN_S:
            self._shown_s = now
            detail = f"{self._calls:,}"
            keys = {"stance": self._parts.stances.name, "step": self._calls}
            self._parts.recorder.write("phase", phase="serving", detail=detail, **keys)
        mark = (self._shape(gate, args, kwargs), self._way(sys._getframe(2)), self._edge())
        return (time.time_ns() // 1000, time.perf_counter_ns(), control.compiles, mark)

    def after(
        self,
        region: Region,
        opened: Opened,
        args: tuple[Any, ...],  # noqa: ARG002 - the Listener's
        kwargs: dict[str, Any],  # noqa: ARG002
    ) -> None:
        started_us, started_ns, compiles, (shape, way, start) = opened
        end = None if start is None else self._edge()  # at once: it is the end of the call
        host_ms = (time.perf_counter_ns() - started_ns) / 1e6
        control, region.first_called = self._parts.control, True
        if control.off or self._ended:
            return
        index = self._indices.get(region.region_id, 0)
        self._indices[region.region_id] = index + 1
        more = control.compiles - compiles
        self._compiling_s += host_ms / 1e3 if more else 0.0
        row = [index, started_us, round(host_ms, 6), None, more, shape, way]
        if start is None:
            self._write(region, row)
        else:
            self._pending.append((region, row, start, end))
            self._settle()
        self._parts.recorder.flush(due=True)

    def nested(self, region: Region) -> Opened:  # noqa: ARG002 - never asked: not watching
        return 0, 0, 0, None

    def after_nested(self, region: Region, opened: Opened) -> None:
        """Nothing is known of calls within another."""

    # -- the end ----------------------------------------------------------------------------------

    def _stop(self, why: str) -> None:
        """Ask the script to end; again at the next call, where it swallowed that."""
        try:
            if self._ended:
                self._driver.edge()
            else:
                self.finish(why)
                self._driver.give_up()
        except SystemExit:
            for region in self._parts.control.regions:
                region.grant(0)
            raise

    def finish(self, why: str = "end") -> None:
        """What is known at the end; once. ``why``: calls, seconds, or end (the script's own)."""
        if self._ended:
            return
        self._ended = True
        self._settle(wait=True)
        parts = self._parts
        parts.stances.look()
        dynamo: Any = sys.modules.get("torch._dynamo.config")
        counters: Mapping[str, Any] = getattr(
            sys.modules.get("torch._dynamo.utils"), "counters", {}
        )
        parts.recorder.flush()
        parts.recorder.write(
            "served_end",
            why=why,
            calls=self._calls,
            stance=getattr(
                getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None),
                "stance",
                None,
            ),
            settings={n: getattr(dynamo, n) for n in _SETTINGS if hasattr(dynamo, n)},
            counters={
                name: int(counters.get(group, {}).get(name, 0))
                for group, names in _COUNTERS.items()
                for name in names
            },
            graphs=int(counters.get("stats", {}).get("unique_graphs", 0)),
            limit_hits=self._limit.found(),
            **_peak(parts.torch),
        )

    # -- one call ---------------------------------------------------------------------------------

    def _shape(self, gate: Gate, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The number of the sizes that its tensors have; `OTHERS` beyond `MOST_SHAPES`."""
        tensor = self._parts.torch.Tensor
        key = (*sizes_of(args, tensor), *kwargs, *sizes_of(kwargs.values(), tensor))
        known = self._shapes.setdefault(gate.region.region_id, {})
        number = known.get(key)
        if number is None and len(known) < MOST_SHAPES:
            number = known[key] = len(known)
            # Name and sizes of each tensor: ``x``, ``batch['mask']``, ``states[0]``.
            own = names_of(gate.original, len(args))
            names = [f"argument {name}" if name.isdecimal() else name for name in own]
            tensors: list[tuple[str, list[int]]] = []
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                inner: Any = [("", value)]
                if isinstance(value, (list, tuple)):
                    inner = ((f"[{n}]", each) for n, each in enumerate(value[:WITHIN]))
                elif isinstance(value, dict):
                    items = list(value.items())[:WITHIN]
                    inner = ((f"[{key!r}]"[:40], each) for key, each in items)
                for part, each in inner:
                    if isinstance(each, tensor):
                        tensors.append((f"{name}{part}", [*each.shape]))
            self._parts.recorder.write(
                "served_shape",
                region_id=gate.region.region_id,
                shape=number,
                tensors=tensors,
            )
        return OTHERS if number is None else number

    def _way(self, frame: Any) -> int:
        """The number of the way through the user's code that led here."""
        key: list[int] = []
        at = frame
        while at is not None and len(key) < 2 * _DEPTH:
            key += (id(at.f_code), at.f_lasti)
            at = at.f_back
        number = self._ways.get(tuple(key))
        if number is None and len(self._ways) < MOST_WAYS:
            number = self._ways[tuple(key)] = len(self._ways)
            stack = self._parts.frames.stack(frame)
            for entry in stack:
                self._parts.sources.keep(entry["file"])
            self._parts.recorder.write("served_way", way=number, stack=stack)
        return OTHERS if number is None else number

    def _edge(self) -> Any:
        """An event on the current stream; None without a device.

        Asking whether there is one takes as long as a short call: no more, once it is in use.
        """
        self._device = self._device or gpu_in_use(self._parts.torch)
        if not self._device:
            return None
        event = self._parts.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _settle(self, *, wait: bool = False) -> None:
        """Write calls whose device time is known; ``wait`` for all, or for the oldest of many."""
        while self._pending:
            region, row, start, end = self._pending[0]
            if not end.query():
                if not wait and len(self._pending) < _PENDING:
                    return
                end.synchronize()
            self._pending.popleft()
            row[3] = round(start.elapsed_time(end), 6)
            self._write(region, row)

    def _write(self, region: Region, row: list[Any]) -> None:
        stance = self._parts.stances.name
        self._parts.recorder.row("served", row, region_id=region.region_id, stance=stance)


class _LimitHits(logging.Handler):
    """torch's warnings that a recompile limit was hit: the first lines, ten at most."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def listen(self) -> None:
        """The logger that writes them, or one above it, whichever has this torch."""
        for name in _LIMIT_LOGGERS:
            logging.getLogger(name).addHandler(self)

    def found(self) -> list[str] | None:
        """The warnings; None where logging is set up such that there would be none."""
        heard = logging.getLogger(_LIMIT_LOGGERS[0]).isEnabledFor(logging.WARNING)
        return self.messages if heard or self.messages else None

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if any(f"config.{name}" in text for name in _LIMITS) and len(self.messages) < 10:
            line = " ".join(text.split())[:300]
            self.messages += [] if line in self.messages else [line]


def _peak(torch: Any) -> dict[str, Any]:
    """The process's largest use of memory so far."""
    if gpu_in_use(torch):
        cuda = torch.cuda
        return {
            "device": f"cuda:{cuda.current_device()}",
            "peak_bytes": cuda.max_memory_allocated(),
            "peak_reserved_bytes": cuda.max_memory_reserved(),
            "total_bytes": cuda.mem_get_info()[1],
        }
    return {"device": "cpu", "peak_bytes": proc_bytes(STATUS, "VmHWM")}

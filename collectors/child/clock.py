"""Timing blocks at their edges only: device events where a GPU is in use, the host clock always.

With the time that the thread ran, and that it waited for a processor; and Python's garbage
collections between the edges, which may lie in one block and not in the next.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from dataclasses import dataclass
from threading import get_ident
from typing import Any, NamedTuple

from .frames import OURS, Frames
from .memory import Memory, page_faults
from .pairs import Block, Pair, paired
from .plan import OpenBlock
from .recorder import Recorder
from .regions import hide_from_dynamo
from .state import Control

_SCHEDSTAT = "/proc/thread-self/schedstat"
#: Roughly what a page takes that is touched for the first time.
FAULT_MS = 1e-3
#: Python's oldest generation: a collection of it looks at all objects.
_FULL = 2
MOST_ASKED = 256  # calls of gc.collect, of one process


class ThreadTime(NamedTuple):
    """What the calling thread has had so far, ms; ``queued`` None where it is not known."""

    running: float
    queued: float | None

    def since(self, earlier: ThreadTime) -> ThreadTime:
        both = self.queued is not None and earlier.queued is not None
        queued = self.queued - earlier.queued if both else None  # type: ignore[operator]
        return ThreadTime(self.running - earlier.running, queued)


def thread_time() -> ThreadTime:
    """Time on a processor, and time ready to run without one (proc(5), schedstat)."""
    running = time.thread_time_ns() / 1e6
    try:
        with open(_SCHEDSTAT, encoding="ascii") as file:  # noqa: PTH123 - half the time of Path
            return ThreadTime(running, int(file.read().split()[1]) / 1e6)
    except (OSError, ValueError, IndexError):
        return ThreadTime(running, None)


class Collected:
    """Garbage collections since `start`: how many, their time, and the line of the full ones.

    From the first `start` on, ``asked`` are the full ones that a call of ``gc.collect`` made, in
    blocks or not. The stack of one that is not full costs about as much as the collection itself.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._on_collection = self._heard  # each access of a method makes another object
        self._began_ns = self._ns = self._count = self._full = 0
        self._places: Counter[tuple[str, int]] = Counter()
        self.asked: list[dict[str, Any]] = []

    def start(self) -> None:
        self._ns = self._count = self._full = 0
        self._places.clear()
        if self._on_collection not in gc.callbacks:
            for each in (Collected._heard, Frames.call_site, Frames.is_user, Frames.is_torch):
                hide_from_dynamo(each)
            gc.callbacks.append(self._on_collection)

    def found(self) -> dict[str, Any]:
        """Keys of the ``block`` event."""
        ((file, line), _) = next(iter(self._places.most_common(1)), ((None, None), 0))
        return {
            "collections": self._count,
            "full_collections": self._full,
            "collection_ms": self._ns / 1e6,
            "collection_file": file,
            "collection_line": line,
        }

    def stop(self) -> None:
        """Hear no more of them."""
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        now = time.perf_counter_ns()
        if phase == "start":
            self._began_ns = now
            return
        took = now - self._began_ns
        self._ns, self._count = self._ns + took, self._count + 1
        if info["generation"] != _FULL:
            return
        self._full += 1
        caller = sys._getframe().f_back  # none where the interpreter ends
        if caller is not None and (site := self._frames.call_site(caller)):
            at = {"file": site["file"], "line": site["line"]}
            self._places[at["file"], at["line"]] += took
            code = caller.f_code
            asked = "collect" in code.co_names and not code.co_filename.startswith(OURS)
            if asked and len(self.asked) < MOST_ASKED:
                began_us = (time.time_ns() - took) / 1000
                self.asked.append({**at, "started_us": began_us, "host_ms": took / 1e6})


@dataclass
class _Block:
    """An open or finished block, until its events can be read."""

    keys: dict[str, Any]
    compiles: int
    calls: int
    opened_ns: int
    thread: ThreadTime
    faults: int
    ident: int
    elsewhere: int
    start: Any = None
    end: Any = None


class BlockTimer:
    """Writes one ``block`` event per block. Times in ms; ``step_ms`` is the latest by stance,
    ``fault_share`` roughly what page faults took of it.

    ``pairs``: those of which both blocks are written. ``replayed``: the script has ended.
    ``trial``: the remedy that is tried.
    """

    def __init__(self, torch: Any, recorder: Recorder, memory: Memory, frames: Frames) -> None:
        self._torch = torch
        self._recorder = recorder
        self._memory = memory
        self._collected = Collected(frames)
        self._open: _Block | None = None
        self._pending: list[_Block] = []
        self._next_index = 0
        self._halves: dict[int, dict[str, Block]] = {}
        self.device = False
        self.replayed = False
        self.trial: str | None = None
        self.step_ms: dict[str, float] = {}
        self.fault_share: dict[str, float] = {}
        self.pairs: list[Pair] = []

    @property
    def is_open(self) -> bool:
        return self._open is not None

    def open(self, order: OpenBlock, control: Control, *, step: int, anchor: int | None) -> None:
        """Record the first edge; it is the last thing done before the timed steps begin."""
        self.settle()
        self._memory.open()
        keys: dict[str, Any] = {
            "block_index": self._next_index,
            "pair_index": order.pair,
            "stance": order.stance,
            "anchor_region_id": anchor,
            "first_step": step,
            "steps": order.steps,
            "skipped_steps": order.skipped,
            "replayed": self.replayed,
            "started_us": time.time_ns() / 1000,
        }
        if self.trial is not None:
            keys["trial"] = self.trial
        self._next_index += 1
        counted = control.compiles, control.region_calls
        seen = page_faults(), get_ident(), control.elsewhere
        self._collected.start()
        self._open = block = _Block(keys, *counted, 0, thread_time(), *seen)
        block.start = self._edge()
        block.opened_ns = time.perf_counter_ns()

    def close(self, now: int, control: Control) -> None:
        """Record the last edge, which the host reached at ``now`` (perf_counter_ns)."""
        block, self._open = self._open, None
        if block is None:
            return
        block.end = self._edge()
        block.keys.update(self._collected.found())
        used = thread_time().since(block.thread)
        same = get_ident() == block.ident
        faults, host_ms = page_faults() - block.faults, (now - block.opened_ns) / 1e6
        self.fault_share[block.keys["stance"]] = FAULT_MS * faults / max(host_ms, FAULT_MS)
        block.keys.update(
            thread_ms=used.running if same else None,
            queued_ms=used.queued if same else None,
            other_thread_calls=control.elsewhere - block.elsewhere,
            page_faults=faults,
            host_ms=host_ms,
            region_calls=control.region_calls - block.calls,
            compiles_inside=control.compiles - block.compiles,
        )
        self._memory.close(block.keys["stance"], block.keys["block_index"])
        self._pending.append(block)
        self.settle()

    def drop(self) -> None:
        """Forget an open block: its steps are not what the plan meant."""
        self._open = None

    def drain(self) -> None:
        """Let the device finish what the other stance has queued.

        A GPU-bound stance leaves launches in the queue; a launch-bound one measured behind them
        would look as fast as its kernels alone.
        """
        if self.device:
            self._torch.cuda.synchronize()

    def finish(self) -> None:
        """Write the last blocks, and the calls of ``gc.collect`` that were heard."""
        self.settle(wait=True)
        self._collected.stop()
        for call in self._collected.asked:
            self._recorder.write("collect_call", **call)
        self._collected.asked.clear()

    def settle(self, *, wait: bool = False) -> None:
        """Write the finished blocks whose events are complete; ``wait`` for them at the end."""
        while self._pending:
            block = self._pending[0]
            if block.end is not None and not wait and not block.end.query():
                # until the device has caught up for the first time the host's view has to do
                host_ms = block.keys["host_ms"] / block.keys["steps"]
                self.step_ms.setdefault(block.keys["stance"], host_ms)
                return
            self._pending.pop(0)
            keys = block.keys
            clock, duration = "host", keys["host_ms"]
            if block.end is not None:
                block.end.synchronize()
                clock, duration = "device", block.start.elapsed_time(block.end)
            self._recorder.write("block", **keys, clock=clock, duration_ms=duration)
            if duration > 0:
                self.step_ms[keys["stance"]] = duration / keys["steps"]
                self._match(keys, Block(duration, keys["steps"], keys["compiles_inside"]))

    def _match(self, keys: dict[str, Any], block: Block) -> None:
        """Keep the pair if this is its second block."""
        index = keys["pair_index"]
        if index is None:
            return
        sides = self._halves.setdefault(index, {})
        sides[keys["stance"]] = block
        if len(sides) == 2:
            self.pairs.append(paired(index, self._halves.pop(index)))

    def _edge(self) -> Any:
        if not self.device:
            return None
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def gpu_in_use(torch: Any) -> bool:
    """Whether the script has put anything on a CUDA device; never initialises CUDA itself."""
    cuda = torch.cuda
    return bool(cuda.is_initialized()) and cuda.memory_allocated() > 0

"""Memory for a profiler's time: touched before, and given back."""

import gc
import subprocess
import sys
from textwrap import dedent
from types import SimpleNamespace

import pytest

from traceview.collectors.child.memory import Memory, Pile

FAULTS = """
    import ctypes
    from traceview.collectors.child.memory import STATUS, Reserve, page_faults, proc_bytes

    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]

    def step():
        before = page_faults()
        taken = [libc.malloc(100_000) for _ in range(300)]
        for each in taken:
            ctypes.memset(each, 1, 100_000)
        for each in taken:
            libc.free(each)
        return page_faults() - before

    step()
    without, first = step(), proc_bytes(STATUS, "VmRSS")
    reserve = Reserve()
    reserve.take()
    taken = proc_bytes(STATUS, "VmRSS")
    within = step()
    reserve.give_back()
    print(without, within, taken - first, proc_bytes(STATUS, "VmRSS") - first)
"""


def test_what_moves_in_the_heap_finds_memory_that_was_touched():
    command = [sys.executable, "-c", dedent(FAULTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    without, within, taken, left = map(int, done.stdout.split())
    if without < 1000:
        pytest.skip("this C library keeps freed memory")
    assert within < without / 20
    assert taken > 30_000_000
    assert left < taken / 10


def test_what_a_profiler_keeps_is_no_peak_of_a_block():
    written = []
    memory = Memory(None, SimpleNamespace(write=lambda *_, **keys: written.append(keys)))
    memory.open()
    memory.close("eager", 0)
    memory.window_opens()
    kept = bytearray(b"x" * 60_000_000)
    memory.window_closed()
    memory.open()
    memory.close("eager", 1)
    if not written:
        pytest.skip("peaks can't be reset here")
    before, after = (each["peak_bytes"] for each in written)
    assert len(kept) / 2 < memory.kept
    assert abs(after - before) < len(kept) / 3


class Kept:
    """A tensor of 100 bytes in a circle."""

    alive = 0

    def __init__(self):
        self.itself = self
        Kept.alive += 100

    def __del__(self):
        Kept.alive -= 100


def test_what_piles_up_while_the_profiler_runs_limits_the_next_window_and_is_freed():
    cuda = SimpleNamespace(
        memory_allocated=lambda: 500 + Kept.alive,
        memory_reserved=lambda: 600,
        mem_get_info=lambda: (1500, 4000),  # 1600 bytes are free, with 100 that are cached
    )
    gc.collect()
    gc.disable()
    try:
        pile = Pile(SimpleNamespace(cuda=cuda))
        pile.begin(device=True)
        assert pile.most_steps(2) > 1e2
        Kept()
        assert pile.most_steps(2) == 8  # 50 bytes for each, and a quarter may go
        pile.clear()
        assert Kept.alive == 0
    finally:
        gc.enable()
        gc.collect()

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


@pytest.mark.parametrize(
    ("steps", "ended", "left"),
    [(2, False, 200), (3, False, 0), (1, True, 0)],
    ids=["small", "more than a quarter of what was free", "after the window"],
)
def test_what_piles_up_while_the_profiler_runs_is_freed(steps, ended, left):
    cuda = SimpleNamespace(
        memory_allocated=lambda: 500 + Kept.alive,
        memory_reserved=lambda: 600,
        mem_get_info=lambda: (800, 2000),  # 900 bytes are free, with 100 that are cached
    )
    gc.collect()
    gc.disable()
    try:
        pile = Pile(SimpleNamespace(cuda=cuda))
        pile.begin(device=True)
        for _ in range(steps):
            Kept()
        pile.sweep(ended=ended)
        assert Kept.alive == left
    finally:
        gc.enable()
        gc.collect()

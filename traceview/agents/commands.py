"""A traceview command in a process of its own: its progress as it comes, and its end on request.

A process, since commands change folders and signals, and what they read may be hostile: whatever
happens to it, the server answers the next request.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

#: Of what a command prints: more is an error, not a cut answer.
MOST_BYTES = 32 * 2**20
_LAST_LINES = 12
_OURS = "traceview: "
_GRACE_S = 15.0  # to write what there is after an interrupt
#: ``python -m traceview``, but SIGTERM comes when the server is gone (linux/prctl.h).
_ENTER = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() == int(sys.argv.pop(1)):
    from traceview.__main__ import main
    main()
"""
Report = Callable[[str], Awaitable[None]]


class Done(NamedTuple):
    """How it ended; ``said``: the last lines on stderr, which hold an error's fact and remedy."""

    code: int
    stdout: str
    said: str


async def carry_out(words: Sequence[str], cwd: Path, report: Report) -> Done:
    """Run ``traceview WORDS`` in ``cwd``; ``report`` gets its lines on progress.

    Cancelled, it is interrupted like by Ctrl-C, so that it ends the script, and killed if it is
    still there after 15 seconds. It ends with this process, however that ends.
    """
    last: list[str] = []
    with tempfile.TemporaryFile() as output:
        process = await anyio.open_process(
            [sys.executable, "-c", _ENTER, str(os.getpid()), *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            async for line in _lines(process):
                last = [*last[1 - _LAST_LINES :], line]
                if line.startswith(_OURS):
                    await report(line.removeprefix(_OURS))
            await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await _ended(process)
        output.seek(0)
        data = output.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        data, last = b"", [f"The answer has more than {MOST_BYTES // 2**20} MiB: ask for less."]
    text = data.decode("utf-8", "replace")
    return Done(process.returncode or 0, text, "\n".join(last))


async def _lines(process: Process) -> AsyncIterator[str]:
    rest = ""
    assert process.stderr is not None
    async for piece in TextReceiveStream(process.stderr, errors="replace"):
        *whole, rest = (rest + piece).split("\n")
        for line in whole:
            yield line
    if rest:
        yield rest


async def _ended(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        with anyio.move_on_after(_GRACE_S):
            await process.wait()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    await process.aclose()

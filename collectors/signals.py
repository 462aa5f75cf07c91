"""Signals that reach us while the target runs: who sent them, and whether the child has them too.

The child stays in our process group. In a group of its own it would be in the background, and its
first read from the terminal would stop it (SIGTTIN). So a Ctrl-C reaches both of us at once, from
the kernel; forwarding that one would interrupt the script's own clean-up a second time. A signal
that was sent to us alone (``kill PID``) is forwarded. Only siginfo tells the two apart, and Python
gives it to nobody but ``sigtimedwait``: hence blocked signals, taken one by one in the loop.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SI_KERNEL = 0x80  # linux/include/uapi/asm-generic/siginfo.h


@dataclass(frozen=True, slots=True)
class Arrived:
    """A signal; ``from_terminal``: the kernel sent it to the whole foreground group."""

    number: int
    from_terminal: bool


class SignalDesk:
    """While entered, signals are kept for ``take``. Does nothing outside the main thread."""

    def __init__(self) -> None:
        self._seen: deque[Arrived] = deque()
        self._former: dict[signal.Signals, Any] = {}
        self._mask: set[int | signal.Signals] | None = None
        self._active = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> SignalDesk:
        for number in (*ENDING, signal.SIGWINCH) if self._active else ():
            former = signal.getsignal(number)
            if former is signal.SIG_IGN:  # nohup, or a background job: the child ignores it too
                continue
            self._former[number] = former
            signal.signal(number, self._note)
        return self

    def child_started(self) -> None:
        """Block from now on. Not before: the child would have inherited the mask."""
        if self._former:
            self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, set(self._former))

    def take(self) -> list[Arrived]:
        """What came since the last call."""
        while self._mask is not None and (info := signal.sigtimedwait(set(self._former), 0)):
            self._seen.append(Arrived(info.si_signo, info.si_code == _SI_KERNEL))
        taken = list(self._seen)
        self._seen.clear()
        return taken

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mask is not None:
            self.take()  # what is pending now came for a run that is over
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        for number, former in self._former.items():
            signal.signal(number, former if former is not None else signal.SIG_DFL)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        # Before the mask was set (or in another thread): the sender is not known, and a Ctrl-C in
        # those few milliseconds is likelier than a lone kill.
        self._seen.append(Arrived(number, number == signal.SIGINT))

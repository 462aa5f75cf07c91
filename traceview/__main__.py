"""``python -m traceview`` and the console script."""

from __future__ import annotations

import errno
import gc
import io
import os
import select
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

#: Allocations before a garbage collection: a short command creates almost no garbage.
_GARBAGE_AFTER = 1_000_000
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
INTERRUPTED = 130
UNREAD = 1
_LONGEST = 4_000  # characters of a message: a path may have any length
_NO_THREAD = "can't start new thread"  # Python's words


def main() -> None:
    """Run the command line; our own errors print one sentence of fact and one of remedy.

    The exit code is the command's; 2 or 4 for an error of ours, 5 for a defect of ours; 130 after a
    Ctrl-C outside of the target; 1 if stdout is closed early (``| head``). A SIGTERM or SIGHUP ends
    it as it ends other programs, after it has removed its temporary files and ended its processes.
    """
    gc.set_threshold(_GARBAGE_AFTER)
    # Closed standard streams become /dev/null: files opened later would take their numbers. What an
    # output's encoding lacks is printed as a question mark, and a slow reader is waited for.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
            with suppress(OSError):
                os.set_blocking(stream.fileno(), True)
    former = _raise_when_terminated()
    try:
        code = _run()
    except KeyboardInterrupt:  # also while modules are imported
        code = INTERRUPTED
    except _Terminated as end:
        signal.signal(end.number, signal.SIG_DFL)
        os.kill(os.getpid(), end.number)
        raise
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    if code == INTERRUPTED and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would end it by the signal
    sys.exit(code)


class _Terminated(BaseException):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _raise_when_terminated() -> dict[signal.Signals, Any]:
    """Unwind the stack on a signal that would end the process at once; the handlers before that."""

    def terminated(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # one is enough
        raise _Terminated(number)

    former: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                former[number] = signal.signal(number, terminated)
    return former


def _run() -> int:
    import click

    from traceview.cli import traceview
    from traceview.errors import DEFECT, TraceviewError, described, is_defect

    try:
        # Without standalone mode a command's ctx.exit(CODE) comes back as the value.
        code = traceview.main(prog_name="traceview", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except TraceviewError as error:
        return _complain(error.fact, error.remedy, error.exit_code)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_unwritable()
        return UNREAD
    except OSError as error:
        if _discard_unwritable() and error.errno == errno.EIO:  # the terminal is gone
            return UNREAD
        if not _has_folder():
            fact, remedy = "The current folder no longer exists.", "Change to one that does."
            return _complain(fact, remedy, 2)
        where = f" ({error.filename})" if error.filename else ""
        if error.errno not in _NO_SPACE:
            fact = f"The system refused{where}: {error.strerror or described(error)}."
            return _complain(fact, "Fix that, and rerun the command.", 2)
        return _complain(
            f"The disk is full, or a limit on file sizes is reached{where}.",
            "Free some disk space, or raise `ulimit -f`, and rerun the command.",
            2,
        )
    except MemoryError:
        return _complain("There is too little memory for this.", "Read fewer or smaller logs.", 2)
    except BaseException as error:
        if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
            fact = "The system refused another thread: a limit on processes or memory is reached."
            return _complain(fact, "Raise `ulimit -u`, or end other programs.", 2)
        if not is_defect(error):
            raise
        return _complain(
            f"traceview has a defect here: {described(error)}.",
            "Please report it with the output of `traceview --debug` and the same command.",
            DEFECT,
        )


def _has_folder() -> bool:
    with suppress(OSError):
        return bool(os.getcwd())  # noqa: PTH109
    return False


def _complain(fact: str, remedy: str, code: int) -> int:
    from traceview.collectors.child.secrets import masked_message
    from traceview.words.text import clean

    fact = clean(masked_message(fact), _LONGEST)  # it may name a URL with a password
    with suppress(OSError):
        sys.stderr.write(f"traceview: {fact}\n  {remedy}\n")
    _discard_unwritable()
    return code


def _discard_unwritable() -> bool:
    """Send what a stream can't take to /dev/null, or Python reports it at exit.

    Whether one has lost its reader or terminal.
    """
    lost = False
    for stream in (sys.stdout, sys.stderr):
        look = select.poll()
        with suppress(OSError):  # it is none of the system's
            look.register(stream.fileno(), 0)
        gone = bool(look.poll(0))
        full = True
        with suppress(OSError):
            stream.flush()
            full = False
        if gone or full:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        lost = lost or gone
    return lost


if __name__ == "__main__":
    main()

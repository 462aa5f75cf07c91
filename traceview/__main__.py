"""``python -m traceview`` and the console script."""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

#: Allocations before a garbage collection: a short command creates almost no garbage.
_GARBAGE_AFTER = 1_000_000
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
INTERRUPTED = 130
UNREAD = 1


def main() -> None:
    """Run the command line; our own errors print one sentence of fact and one of remedy.

    The exit code is the command's; 2 or 4 for an error of ours, 5 for a defect of ours; 130 after a
    Ctrl-C outside of the target; 1 if stdout is closed early (``| head``). A SIGTERM or SIGHUP ends
    it as it ends other programs, after it has removed its temporary files and ended its processes.
    """
    gc.set_threshold(_GARBAGE_AFTER)
    _usable_streams()
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


def _usable_streams() -> None:
    """Closed standard streams become /dev/null: files opened later would take their numbers. What
    the encoding of an output lacks is printed as a question mark.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


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
        _discard_stdout()
        return UNREAD
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        if error.errno not in _NO_SPACE:
            fact = f"The system refused{where}: {error.strerror or described(error)}."
            return _complain(fact, "Fix that, and rerun the command.", 2)
        _discard_stdout()
        return _complain(
            f"The disk is full, or a limit on file sizes is reached{where}.",
            "Free some disk space, or raise `ulimit -f`, and rerun the command.",
            2,
        )
    except MemoryError:
        return _complain("There is too little memory for this.", "Read fewer or smaller logs.", 2)
    except BaseException as error:
        if not is_defect(error):
            raise
        return _complain(
            f"traceview has a defect here: {described(error)}.",
            "Please report it with the output of `traceview --debug` and the same command.",
            DEFECT,
        )


def _complain(fact: str, remedy: str, code: int) -> int:
    from traceview.collectors.child.secrets import masked_message

    fact = masked_message(fact)  # it may name a URL with a password
    sys.stderr.write(f"traceview: {fact}\n  {remedy}\n")
    return code


def _discard_stdout() -> None:
    """Send what is still buffered to /dev/null, so that Python does not report it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()

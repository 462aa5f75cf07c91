"""``python -m traceview`` and the console script."""

from __future__ import annotations

import errno
import gc
import os
import sys

#: Objects made before garbage is looked for: of a command that ends soon, next to nothing is any.
_GARBAGE_AFTER = 200_000
INTERRUPTED = 130
UNREAD = 1


def main() -> None:
    """Run the command line; errors of ours end in one sentence of fact and one of remedy.

    Ends with the code that the command chose; 2, 3 or 4 for an error of ours; 130 after a Ctrl-C
    outside of the target; 1 where nobody reads what we print (``| head``).
    """
    gc.set_threshold(_GARBAGE_AFTER)
    sys.exit(_run())


def _run() -> int:
    import click

    from traceview.cli import traceview
    from traceview.errors import TraceviewError

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
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return UNREAD
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _discard_stdout()
        where = f" ({error.filename})" if error.filename else ""
        return _complain(f"The disk is full{where}.", "Make room, then say the same again.", 2)


def _complain(fact: str, remedy: str, code: int) -> int:
    sys.stderr.write(f"traceview: {fact}\n  {remedy}\n")
    return code


def _discard_stdout() -> None:
    """What is still buffered can go nowhere: without this Python complains of it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()

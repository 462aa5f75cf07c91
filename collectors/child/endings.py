"""The exception that ended the script, as the interpreter keeps it until exit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .secrets import masked_message

if TYPE_CHECKING:
    from .frames import Frames

MAX_MESSAGE = 4096


def uncaught() -> BaseException | None:
    """The uncaught exception: the interpreter keeps it in ``sys`` before it prints it.

    ``sys.exit`` and Ctrl-C are endings, no errors.
    """
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException) or isinstance(error, (SystemExit, KeyboardInterrupt)):
        return None
    return error


def ended_by_exception() -> bool:
    """Whether anything but the end of the script or ``sys.exit`` ended it; Ctrl-C too."""
    return getattr(sys, "last_value", None) is not None


def described(error: BaseException, frames: Frames) -> dict[str, Any]:
    """Type, message, the user's stack, and the last place in it: keys of the ``error`` event."""
    stack = frames.traceback(error.__traceback__)
    last = stack[-1] if stack else {}
    return {
        "type": type(error).__qualname__,
        "message": masked_message(str(error)[:MAX_MESSAGE]),
        "stack": stack,
        "file": last.get("file"),
        "line": last.get("line"),
        "function": last.get("function"),
    }

"""What workers are given to do; each imports this module, so it imports next to nothing."""

import os
import signal
import threading
import time
from pathlib import Path


def double(item):
    return 2 * item


def die_of_three(item):
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return 2 * item


def double_and_die_soon(item):
    """The result comes back, and the process is gone before it is given anything else."""
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return 2 * item


def fail_of_three(item):
    if item == 3:
        raise ValueError(item)
    return 2 * item


def refuse(item):
    from traceview.errors import UsageError

    raise UsageError("It can't be done.", f"Leave {item} out.", slug="refused")


def say_and_sleep(item):
    Path(str(os.getpid())).touch()
    time.sleep(60)
    return item


def sleep_long(item):
    time.sleep(item)
    return item


def grow(megabytes):
    """Holds so much memory for a while."""
    kept = [bytearray(b"x" * (1 << 20)) for _ in range(megabytes)]
    time.sleep(1.5)
    return len(kept)

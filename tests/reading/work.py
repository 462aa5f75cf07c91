"""What workers are given to do; each imports this module, so it imports next to nothing."""

import os
import signal
import threading
import time


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


def fail(item):
    raise ValueError(item)

"""Scripts in forks of a process that has imported torch (``torch_server.py``): one a worker."""

import atexit
import json
import os
import select
import subprocess
import sys
from functools import cache
from pathlib import Path


class Fork:
    """A script that runs in a fork; as a ``subprocess.Popen``, as far as it is one.

    ``given``, ``out`` and ``err`` are names of its standard streams. One runs at a time.
    """

    def __init__(self, script, args, *, cwd, env, given, out, err):
        request = {
            "script": str(script), "args": [*map(str, args)], "cwd": str(cwd), "env": dict(env),
            "given": str(given), "out": str(out), "err": str(err),
        }  # fmt: skip
        self.returncode = None
        self._server = _server()
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self.pid = int(self._server.stdout.readline())

    def poll(self):
        return self.wait(0)

    def wait(self, timeout=None):
        """The exit code, None where it still runs after ``timeout`` seconds."""
        if self.returncode is None:
            if not select.select([self._server.stdout], [], [], timeout)[0]:
                return None
            status = int(self._server.stdout.readline())
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    @classmethod
    def popen(cls, command, env, stdin, stdout, stderr, close_fds):
        """In place of ``subprocess.Popen`` where a collector starts ``PYTHON SCRIPT ARGS...``."""
        numbers = [n if given is None else given for n, given in enumerate((stdin, stdout, stderr))]
        given, out, err = (f"/proc/{os.getpid()}/fd/{number}" for number in numbers)
        _, script, *args = command
        return cls(script, args, cwd=Path.cwd(), env=env, given=given, out=out, err=err)


@cache
def _server():
    """It ends when the worker does, and its stdin is closed."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    code = Path(__file__).with_name("torch_server.py").read_text()  # of no file: not the user's
    drop = ("TORCH", "PYTHONPATH", "TRACEVIEW", "COV_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(drop)}
    variables = {**kept, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([sys.executable, "-c", code], env=variables, **pipes)
    atexit.register(_end, server)
    return server


def _end(server):
    server.stdin.close()
    server.stdout.close()
    server.kill()
    server.wait()

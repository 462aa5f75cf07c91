"""The collector's half that runs inside the target's interpreter.

Standard library and the torch that is there; Python 3.10 or later. ``bootstrap/sitecustomize.py``
loads this package under the private name ``_traceview_child`` before the user's script starts;
nothing but the hook below is imported until the script itself imports torch.

    bootstrap/sitecustomize  →  start()  →  importhook  ── after `import torch` ──  session
    session    wires everything together and owns the end of the process
    regions    torch.compile patched, and what it was given; gate: the counting wrapper
    listener   what gates and optimizers report: finds the step edges, times watched calls
    driver     at a step edge: carries out what `plan` (pure) orders, with clock and window
    pairs      how exactly the blocks measured so far show the speedup (pure)
    window     torch.profiler for a few steps; marks: lines, kernels, collections named in it
    target     what --compile names, found and compiled for the script
    compiles   compiles, resets, matched patterns; guards: what they cost
    taken      keeps a call of each callable, with copies of its inputs
    own_code   do the script's own compiled code and eager agree when it has ended
    repeat     where the script ended too early, the plan goes on with calls that were kept
    remedies   what `traceview try` switches, and the code that Dynamo compiles again for it
    trial      with --compare-outputs: what they give, eager and compiled; replay runs them again
    bisection  what is wrong, followed to its operator: pieces of graphs, operators seen while they
               run, a script that stands alone
    ceilings   what the device can do, when the script has ended
    secrets    what is masked in all that is written
    recorder   one JSON object a line, in the form of docs/run-folder.md
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any


def start(raw_config: Mapping[str, Any], given: Mapping[str, str]) -> None:
    """Open this process's events file and wait for torch; raises what goes wrong.

    ``given`` are the variables that the parent set and that are out of the environment by now.
    """
    from . import endings
    from .config import Config
    from .importhook import after_import
    from .recorder import Recorder

    config = Config.from_json(raw_config)
    follow(given)
    recorder = Recorder(config.raw)
    recorder.process(config.pass_name)
    if config.without_eager:
        recorder.note("eager steps", config.without_eager)

    def collect(torch: Any) -> None:
        from .session import Session

        atexit.unregister(ended)
        try:
            Session(config, recorder, torch).begin()
        except Exception as error:  # noqa: BLE001 - the user's script must run whatever fails here
            recorder.note("starting the collector", error)

    def ended() -> None:
        """The script has ended, and never imported torch.

        Nothing is imported where Ctrl-C ended it: code run from a string (``dataclasses`` does)
        makes CPython forget that it has to end by SIGINT.
        """
        error = endings.uncaught()
        if error is None or os.getpid() != own_pid:
            return
        from .frames import Frames

        recorder.write("error", **endings.described(error, Frames(None, config.script_root)))

    own_pid = os.getpid()
    atexit.register(ended)
    after_import("torch", collect, partial(lent, "TORCH_LOGS", given.get("TORCH_LOGS")))


@contextmanager
def lent(name: str, value: str | None) -> Iterator[None]:
    """Set an environment variable for a while; None: leave it as it is."""
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        if value is not None and before is None:
            os.environ.pop(name, None)
        elif value is not None and before is not None:
            os.environ[name] = before


def follow(ours: Mapping[str, str]) -> None:
    """Give ``ours``, the variables of this start, to what replaces this process by ``os.exec…``.

    A script that does starts again the way that it started. What the parent set has left the
    environment by then, so that the script's subprocesses do not lead back here.

    ``os.execl``, ``os.execvp`` and the others all end in the two that are replaced here. A fork
    that becomes another program is a subprocess like any other.
    """
    own_pid, execve = os.getpid(), os.execve

    def given(env: Any) -> Any:
        if os.getpid() != own_pid:
            return env
        variables = {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()}
        path = (ours.get("PYTHONPATH", "").partition(os.pathsep)[0], variables.get("PYTHONPATH"))
        return {**variables, **ours, "PYTHONPATH": os.pathsep.join(filter(None, path))}

    def execv_of_ours(path: Any, argv: Any, /) -> Any:
        return execve(path, argv, given(os.environ))

    def execve_of_ours(path: Any, argv: Any, env: Any) -> Any:
        return execve(path, argv, given(env))

    for name, new in (("execv", execv_of_ours), ("execve", execve_of_ours)):
        old = getattr(os, name)
        new.__name__, new.__qualname__, new.__doc__ = name, name, old.__doc__
        setattr(os, name, new)

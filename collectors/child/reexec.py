"""Follow a script that replaces itself by ``os.exec…``: it starts again the way that it started.

What the parent set has left the environment by then, so that the script's subprocesses do not lead
back here; a program that takes this process's place is the script still.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def follow(ours: Mapping[str, str]) -> None:
    """Give ``ours``, the variables of this start, to whatever replaces this process.

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

"""A process that has imported torch and forks for each script: the second half of its start.

Half of a short run is torch's import, and that of the compilers. Requests come as lines of JSON on
stdin; the answers on stdout are the fork's process id, then its status as ``os.waitpid`` gives it.
In the fork Python's own order is kept: PYTHONPATH, ``sitecustomize``, the script's folder, the
script as ``__main__``.
The collector finds torch imported, as it does in a notebook, and torch reads its log variables
again; ``test_child_live.py`` has the scripts that start without.
"""

import gc
import importlib
import json
import os
import sys
import types
from pathlib import Path

os.environ["TORCH_WARM_POOL"] = "0"  # or forks would share Inductor's processes

import torch
import torch._dynamo
import torch._dynamo.backends.debugging
import torch._dynamo.repro.after_aot
import torch._functorch.aot_autograd
import torch._inductor.compile_fx
import torch._inductor.fx_passes.joint_graph
import torch.profiler


def serve():
    """The request that this process is a fork for; None in the server, when all is over."""
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    with os.fdopen(requests, "rb", buffering=0) as lines:
        for line in lines:
            asked = json.loads(line)
            streams = _opened(asked)
            pid = os.fork()
            if not pid:
                os.close(answers)
                return asked | {"streams": streams}
            for number in streams:
                os.close(number)
            os.write(answers, b"%d\n" % pid)
            os.write(answers, b"%d\n" % os.waitpid(pid, 0)[1])
    return None


def _opened(asked):
    """The script's standard streams; before the answer, as the asking process closes its own."""
    appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    written = [os.open(asked.pop(name), appended, 0o600) for name in ("out", "err")]
    return [os.open(asked.pop("given"), os.O_RDONLY), *written]


def become(script, args, cwd, env, streams):
    """The script's code and its globals, once this process is what Python makes for a script."""
    for number, opened in enumerate(streams):
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    logging = torch._logging._internal
    logging.LOG_TRACE_HANDLER = None  # of the folder that TORCH_TRACE named at the import
    logging._init_logs()
    paths = env.get("PYTHONPATH")
    sys.path[:] = [*(paths.split(os.pathsep) if paths else ()), *sys.path[1:]]
    sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError:
        if paths:
            raise
    sys.path.insert(0, str(Path(script).parent))
    sys.argv[:] = [script, *args]
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    return compile(Path(script).read_bytes(), script, "exec"), main.__dict__


gc.freeze()  # a fork's collections, and its end, then leave alone what all forks share
request = serve()
if request is not None:
    exec(*become(**request))

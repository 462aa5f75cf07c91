"""Commands on a machine that gives way: each in a fork of a process that has imported traceview.

A *room* is a process with steps, and maybe a small disk of its own (a tmpfs that only it sees). A
step is a command with faults: real ones where the kernel has them (limits, closed descriptors,
dropped capabilities, read-only disks, signals), else an error that is raised, or something that is
done, when a function is called for the n-th time.
"""

import contextlib
import ctypes
import errno
import fcntl
import gc
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

#: linux/sched.h, linux/mount.h, linux/capability.h
_NEWNS, _NEWUSER = 0x20000, 0x10000000
_RDONLY, _REMOUNT, _REC, _PRIVATE = 1, 32, 16384, 1 << 18
_CAPABILITY_3, _DAC = 0x20080522, 0b110
LIMIT_S = 60
_IMPORTED = (
    "cli", "cli.postmortem", "cli.pipeline", "cli.check", "cli.compare", "cli.runs", "cli.scripts",
    "reading", "derive", "diagnosis", "rules", "reports.html", "reports.terminal", "query", "check",
    "reports.check", "reports.compare", "compare", "ticket.bundle", "collectors", "parse", "inputs",
    "derive.compiler.trace", "trials", "reports.trials.words", "reading.executors", "parse.cutting",
)  # fmt: skip


class Machine:
    """The process that forks, from the test's side."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "POLARS_MAX_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        )

    def room(self, folder, *steps, disk=None):
        """What became of ``steps`` in ``folder``, the first of them first; None: no disk to be had.

        ``disk``: options of a tmpfs in ``folder/disk``, filled with what is in ``folder/on_disk``.
        """
        asked = {"folder": str(folder), "steps": steps, "disk": disk}
        self._process.stdin.write(json.dumps(asked, default=str).encode() + b"\n")
        self._process.stdin.flush()
        found = json.loads(self._process.stdout.readline())
        return found and [Ended(**each) for each in found]

    def close(self):
        """End it."""
        self._process.communicate()


class Ended:
    """How a step ended: exit code (or minus the signal), its output, and the files then."""

    def __init__(self, code, out, err, files):
        self.code, self.out, self.err, self.files = code, out, err, files

    def __repr__(self):
        return f"{self.code}: {self.out[-300:]!r} {self.err[-2000:]!r}"


def step(*words, **given):
    """``traceview WORDS`` and its faults, by the names of the functions below."""
    return {"words": [str(word) for word in words], **given}


# What follows runs in the process that forks, or in a fork.


def serve():
    """Read rooms, answer with what became of their steps."""
    for name in _IMPORTED:
        importlib.import_module(f"traceview.{name}")
    gc.disable()
    gc.freeze()  # pages that a collection writes to are copied in every fork
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        answer, answered = os.pipe()
        if (room := os.fork()) == 0:
            with os.fdopen(answered, "w") as out:
                json.dump(_room(**asked), out)
            os._exit(0)
        os.close(answered)
        with os.fdopen(answer) as found:
            text = found.read()
        os.waitpid(room, 0)
        sys.stdout.write((text or '"lost"') + "\n")
        sys.stdout.flush()


def _room(folder, steps, disk):
    os.chdir(folder)
    if disk is not None and not _mounted(Path(folder, "disk"), disk):
        return None
    return [_ended(number, given) for number, given in enumerate(steps)]


def _mounted(place, options):
    libc = ctypes.CDLL(None, use_errno=True)
    place.mkdir(exist_ok=True)
    if libc.unshare(_NEWNS | (0 if os.geteuid() == 0 else _NEWUSER)):
        return False
    libc.mount(None, b"/", None, _REC | _PRIVATE, None)
    if libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, options.encode()):
        return False
    if (given := place.with_name("on_disk")).exists():
        shutil.copytree(given, place, dirs_exist_ok=True, symlinks=True)
    return True


def _ended(number, given):
    out, err = (Path(f"{number}.{name}") for name in ("out", "err"))
    if (pid := os.fork()) == 0:
        code = 99
        try:
            for descriptor, file in ((1, out), (2, err)):
                os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            kept = os.dup(2)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # it is ignored under nohup
            code = _command(**given)
        except BaseException:  # noqa: BLE001
            resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
            os.write(kept, traceback.format_exc().encode())
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(code)
    until = time.monotonic() + LIMIT_S
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    texts = [path.read_text(errors="replace") if path.exists() else "" for path in (out, err)]
    return {
        "code": os.waitstatus_to_exitcode(ended[1]),
        "out": texts[0],
        "err": texts[1],
        "files": {
            str(path): hashlib.sha1(path.read_bytes()).hexdigest()
            for path in sorted(Path().rglob("*"))
            if path.is_file() and path.name not in (out.name, err.name)
        },
    }


def _command(words, **faults):
    from traceview.__main__ import main

    for name, value in faults.items():
        globals()[name](value)
    for number, (name, way) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            setattr(sys, name, os.fdopen(number, way, closefd=False))
    sys.argv = ["traceview", *words]
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 98


def env(values):
    """Variables; null takes one away."""
    for name, value in values.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def cwd(folder):
    """Another current folder."""
    os.chdir(folder)


def gone_cwd(folder):
    """A current folder that is gone."""
    Path(folder).mkdir()
    os.chdir(folder)
    Path("..", folder).rmdir()


def empty(folder):
    """A folder that is there already."""
    Path(folder).mkdir()


def limit(values):
    """Resource limits."""
    for name, value in values.items():
        resource.setrlimit(getattr(resource, name), (value, value))


def closed(descriptors):
    """Standard streams that are closed, as Python has them then."""
    for number in descriptors:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)


def onto(files):
    """Standard streams on other files."""
    for number, file in files.items():
        os.dup2(os.open(file, os.O_RDWR), int(number))


def no_reader(number):
    """A pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.dup2(writer, number)
    os.close(reader)


def slow_reader(number):
    """A pipe that is full for a while, and that its other end wants nobody to wait for."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"." * 4096)
    os.dup2(writer, number)
    if os.fork() == 0:
        os.close(writer)
        os.close(number)
        time.sleep(0.2)
        while os.read(reader, 1 << 16):
            pass
        os._exit(0)
    os.close(writer)


def terminal_gone(_):
    """A terminal that was closed: what is written to it is an error of input and output."""
    ours, theirs = os.openpty()
    for number in (0, 1, 2):
        os.dup2(theirs, number)
    os.close(theirs)
    os.close(ours)


def plain_user(_):
    """What root may do with other people's files, taken away."""

    class Header(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

    class Sets(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]

    libc, header, sets = ctypes.CDLL(None), Header(_CAPABILITY_3, 0), (Sets * 2)()
    libc.capget(ctypes.byref(header), sets)
    sets[0].effective &= ~_DAC
    libc.capset(ctypes.byref(header), sets)


def mode(values):
    """Permissions of files."""
    for file, bits in values.items():
        Path(file).chmod(bits)


def filled(file):
    """A disk that is full to the last byte."""
    with Path(file).open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while ballast.write(b"\0" * 512):
            pass


def no_inodes(folder):
    """A disk that takes no more files."""
    Path(folder).mkdir()
    with contextlib.suppress(OSError):
        for number in range(1 << 20):
            Path(folder, str(number)).touch()


def removed(files):
    """What is no longer there."""
    for file in files:
        shutil.rmtree(file) if Path(file).is_dir() else Path(file).unlink()


def read_only(place):
    """A disk that the kernel has made read-only."""
    ctypes.CDLL(None).mount(None, os.fsencode(place), None, _REMOUNT | _RDONLY, None)


def recovered(_):
    """Everything works again."""
    ctypes.CDLL(None).mount(None, b"disk", None, _REMOUNT, None)
    if Path("disk/x").exists():
        removed(["disk/x"])
    mode(
        {
            name: 0o700
            for name in ("logs", "out", "out/tables", "out/run.json")
            if Path(name).exists()
        }
    )


def claimed(folder):
    """Another one that writes there."""
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)


def ignored(names):
    """Signals that are ignored, as under nohup."""
    for name in names:
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def at(whens):
    """Something that is done when a function is called for the n-th time: (function, n, *what)."""
    for when in whens:
        _at(*when)


def _at(function, nth, what, *how):
    module, _, name = function.rpartition(".")
    for depth in range(module.count(".") + 1):
        with contextlib.suppress(ImportError):
            owner = importlib.import_module(module.rsplit(".", depth)[0])
            for part in module.split(".")[module.count(".") + 1 - depth :]:
                owner = getattr(owner, part)
            break
    plain, calls = getattr(owner, name), []

    def called(*args, **kwargs):
        calls.append(1)
        if len(calls) == nth or (nth < 0 and len(calls) >= -nth):
            DEEDS[what](*how)
        return plain(*args, **kwargs)

    setattr(owner, name, called)


def _fail(code):
    raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)))


def _no_thread():
    raise RuntimeError("can't start new thread")


def _signals(*names):
    for name in names:
        os.kill(os.getpid(), getattr(signal, name))


def _append(file, text):
    with Path(file).open("a") as log:
        log.write(text)


def _clock_back(seconds):
    plain = time.time
    time.time = lambda: plain() - seconds


DEEDS = {
    "fail": _fail,
    "no_thread": _no_thread,
    "signals": _signals,
    "append": _append,
    "truncate": os.truncate,
    "remove": lambda *files: removed(files),
    "clock_back": _clock_back,
}


if __name__ == "__main__":
    serve()

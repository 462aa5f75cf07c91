"""Inputs made by grammar, led by what they reach: no defect, no hang, no memory above the ceiling.

    python benchmarks/bench_fuzz.py [--minutes M] [--processes N] [--state FILE] [NAME…]
    python benchmarks/bench_fuzz.py --replay FILE…

``fuzz_inputs.py`` has a hypothesis strategy for each kind of input. hypothesis makes an input of a
string of bytes (``fuzz_one_input``), and those whose input reaches a line of traceview that none
has reached are kept and varied: as Atheris does it, without a compiler's instrumentation, on each
Python that traceview runs on. Lines are seen by sys.monitoring, before Python 3.12 by sys.settrace.

Each input is read as a reader process does it; every twentieth, and each that reached something
new, goes through the whole ``postmortem``, and what that made through ``report`` or ``check``. A
finding is an exception, also one that cost a record only (``reader_failed``), a process that dies,
more than 10 CPU seconds for an input of up to 1 MB, an exit code that is not documented, or memory
above the ceiling of a post-mortem.

FILE keeps the strings and the findings, so that runs add up; what they reach is found out again at
the start, with the code as it is. Inputs of findings lie in FILE.findings/, for ``--replay``.
"""

import argparse
import base64
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import cache
from hashlib import sha1
from itertools import count
from multiprocessing import connection, get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

ROOT = Path(__file__).resolve().parents[1]
SCOPE = tuple(str(ROOT / part) + os.sep for part in ("traceview", "reports"))
CHUNK_S, STUCK_S = 20, 300
HANG_S = 10  # for 1 MB
WHOLE_EVERY = 20
#: Limits that some inputs are read with.
SMALL = {"records": 20, "events": 20, "names": 5, "ids": 2, "text": 500, "line": 2000, "depth": 5}
SMALL |= {"record": 4000, "members": 2, "bomb": 1000, "ratio": 2, "unpacked": 5000, "digits": 1}
#: A string of bytes is varied so many times at once, at most.
VARIED = 8


class Reached:
    """The lines of traceview that were run, as ``file:line``."""

    def __init__(self):
        self.lines, self._new, self._codes = set(), set(), {}
        if sys.version_info >= (3, 12):
            tool = sys.monitoring.PROFILER_ID
            sys.monitoring.use_tool_id(tool, "fuzz")
            sys.monitoring.register_callback(tool, sys.monitoring.events.LINE, self._line)
            sys.monitoring.set_events(tool, sys.monitoring.events.LINE)

    def _line(self, code, line):
        if code.co_filename.startswith(SCOPE):
            self._add(code, line)
        return sys.monitoring.DISABLE  # this line of this code is not looked at again

    def _add(self, code, line):
        place = f"{Path(code.co_filename).relative_to(ROOT)}:{line}"
        if place not in self.lines:
            self.lines.add(place)
            self._new.add(place)

    def _call(self, frame, _event, _argument):
        """Of sys.settrace: a code whose lines were all seen costs a look-up only."""
        code = frame.f_code
        left = self._codes.get(code)
        if left is None:
            inside = code.co_filename.startswith(SCOPE)
            left = {line for *_, line in code.co_lines() if line} if inside else set()
            left -= {code.co_firstlineno}
            self._codes[code] = left
        if not left:
            return None

        def line(frame, event, _argument):
            if event == "line" and frame.f_lineno in left:
                left.discard(frame.f_lineno)
                self._add(code, frame.f_lineno)
            return line if left else None

        return line

    @contextlib.contextmanager
    def watching(self):
        """Yields a set that has the new lines afterwards."""
        self._new, new = set(), set()
        if sys.version_info < (3, 12):
            sys.settrace(self._call)
        try:
            yield new
        finally:
            if sys.version_info < (3, 12):
                sys.settrace(None)
            new |= self._new


class Hang(BaseException):
    """More CPU time than an input may take."""


def hang(*_):
    raise Hang


@cache
def made_by(target):
    """A function of a string of bytes: (what of it was used, the input it makes), or None."""
    from fuzz_inputs import TARGETS
    from hypothesis import HealthCheck, given, settings

    made = []
    quiet = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))

    def keep(data):
        made.append(data)

    run = quiet(given(TARGETS[target])(keep)).hypothesis.fuzz_one_input

    def make(string):
        made.clear()
        used = run(string)
        return None if used is None or not made else (used, made[0])

    return make


class Fuzzed:
    """Runs inputs in a folder of its own."""

    def __init__(self, folder):
        self._folder = folder
        self.reached = Reached()
        self.rng = random.Random(os.urandom(8))

    def tried(self, data, whole):
        """(new lines, finding or None) of an input; a finding is its kind, its place and more."""
        path = self._folder / "x.log"
        path.write_bytes(data)
        most = HANG_S * max(1, len(data) / 1e6)
        signal.signal(signal.SIGVTALRM, hang)
        began = time.process_time()
        with self.reached.watching() as new:
            signal.setitimer(signal.ITIMER_VIRTUAL, most)
            try:
                found = self._read(path)
            except Hang:
                found = "hang", _place(), traceback.format_exc()[-1500:]
            except MemoryError:
                found = "memory", _place(), traceback.format_exc()[-1500:]
            except BaseException as error:  # noqa: BLE001  # a crash is what is looked for
                found = (
                    "crash",
                    f"{type(error).__name__} {_place()}",
                    traceback.format_exc()[-1500:],
                )
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if found is None and (whole or new):
                found = self._whole(path)
        if found is None and time.process_time() - began > 2 * most:
            found = "hang", "whole command", f"{time.process_time() - began:.0f} s"
        return new, found

    def _read(self, path):
        from msgspec.structs import replace

        from traceview import limits
        from traceview.inputs import READ_ERRORS, find
        from traceview.parse.damage import READER_FAILED, Damage
        from traceview.reading.mapping import Log, parse

        scratch = self._folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        damage = Damage()
        small = path.stat().st_size % 10 == 0  # so that what is beyond a limit is met, too
        with limits.used(replace(limits.now, **SMALL) if small else limits.now):
            for source in find([str(path)], scratch).sources:
                with contextlib.suppress(*READ_ERRORS):
                    for _ in parse(Log(source, "logs", damage)):
                        pass
        for kind, _, example in damage.kinds():
            if kind == READER_FAILED:
                return "crash", example, example
        damage.frame("logs")
        return None

    def _whole(self, path):
        from whole_commands import run

        out = self._folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        form = self.rng.choice(([], ["--json"], ["--markdown"]))
        wrong = run(["postmortem", "--workers", "1", *form, "-o", out, path])
        if wrong is None and (out / "run.json").exists():
            after = self.rng.choice((["report", "--refresh"], ["check", "--max-breaks", "0"]))
            wrong = run([*after, out])
        if wrong is None:
            return None
        kind, text = wrong
        return kind, text.split("defect here:")[-1][:300].splitlines()[0] if text else "", text


def _place():
    """The innermost line of ours of the exception that is handled."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    ours = [
        f"{frame.filename}:{frame.lineno}" for frame in frames if frame.filename.startswith(SCOPE)
    ]
    return ours[-1].removeprefix(str(ROOT)) if ours else ""


def varied(rng, corpus):
    """A string of bytes: a new one, or one of the corpus varied."""
    if not corpus or rng.random() < 0.05:
        return rng.randbytes(rng.choice((100, 500, 2000, 6000)))
    made = bytearray(rng.choice(corpus[-200:] if rng.random() < 0.5 else corpus))
    for _ in range(rng.randint(1, VARIED)):
        at = rng.randrange(len(made) + 1)
        end = min(len(made), at + rng.choice((1, 2, 4, 16, 64)))
        how = rng.randrange(7)
        if how == 0:
            made[at:end] = rng.randbytes(end - at)
        elif how == 1:
            made[at:at] = rng.randbytes(rng.choice((1, 2, 8, 32)))
        elif how == 2:
            del made[at:end]
        elif how == 3:
            made[at:at] = made[at:end]
        elif how == 4:
            other = rng.choice(corpus)
            made[at:] = other[rng.randrange(len(other) + 1) :]
        elif how == 5 and at < len(made):
            made[at] = rng.choice((0, 1, 127, 128, 255, (made[at] + 1) % 256))
        elif at < len(made):
            made[at] ^= 1 << rng.randrange(8)
    return bytes(made[:8000]) + rng.randbytes(200)


def work(pipe, current, memory):
    """A process: makes and runs inputs, a chunk of some seconds at a time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # panics write there
    note = os.open(current, os.O_RDWR | os.O_CREAT)
    try:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            fuzzed = Fuzzed(Path(folder))
            for given in iter(pipe.recv, None):
                pipe.send(chunk(fuzzed, note, *given))
    except BaseException:  # of this program, not of what it runs
        traceback.print_exc(file=stderr)
        raise


def chunk(fuzzed, note, target, corpus, known, replay):
    """What came of some seconds of inputs, or of those of ``replay``."""
    fuzzed.reached.lines |= known
    done = {"target": target, "runs": 0, "kept": [], "findings": [], "slowest": 0.0}
    began, until = time.process_time(), time.monotonic() + CHUNK_S
    make = made_by(target)
    for number in range(len(replay)) if replay else count():
        if not replay and time.monotonic() > until:
            break
        string = replay[number] if replay else varied(fuzzed.rng, corpus)
        os.ftruncate(note, 0)
        os.pwrite(note, string, 0)
        made = make(string)
        if made is None:
            continue
        used, data = made
        at = time.process_time()
        new, finding = fuzzed.tried(data, whole=number % WHOLE_EVERY == 0)
        done["slowest"] = max(done["slowest"], time.process_time() - at)
        done["runs"] += 1
        if new:
            done["kept"].append((used, sorted(new)))
            corpus.append(used)
        if finding:
            done["findings"].append((*finding, data))
    return done | {"cpu_s": time.process_time() - began}


class Worker:
    """A process that works, its pipe, and what it was given."""

    def __init__(self, memory, folder, number):
        self._memory, self.current = memory, folder / f"current-{number}"
        self.start()

    def start(self):
        spawn = get_context("spawn")
        self.pipe, other = spawn.Pipe()
        arguments = (other, str(self.current), self._memory)
        self.process = spawn.Process(target=work, args=arguments, daemon=True)
        self.process.start()
        other.close()
        self.target, self.since = None, time.monotonic()

    def give(self, target, corpus, known, replay):
        self.target, self.since = target, time.monotonic()
        self.pipe.send((target, corpus, known, replay))

    def ended(self):
        """(target, kind, the string it worked on) where the process is gone, or stuck."""
        stuck = self.target and time.monotonic() - self.since > CHUNK_S + STUCK_S
        if stuck:
            self.process.kill()
            self.process.join()
        if self.process.is_alive():
            return None
        string = self.current.read_bytes() if self.current.exists() else b""
        kind = "hang" if stuck else f"died ({self.process.exitcode})"
        return self.target, kind, string


class State:
    """What runs add up to."""

    def __init__(self, path, names):
        self._path, self._saved = path, 0.0
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
        kept = json.loads(path.read_text()) if path and path.exists() else {}
        self.targets = kept.get("targets", {})
        for name in names:
            self.targets.setdefault(name, {"runs": 0, "cpu_s": 0.0, "corpus": [], "slowest": 0.0})
        self.findings = kept.get("findings", [])
        self.lines = set()

    def add(self, done):
        entry = self.targets[done["target"]]
        entry["runs"] += done["runs"]
        entry["cpu_s"] += done["cpu_s"]
        entry["slowest"] = max(entry["slowest"], done["slowest"])
        for used, new in done["kept"]:
            text = base64.b64encode(used).decode()
            if not self.lines.issuperset(new) and text not in entry["corpus"]:
                entry["corpus"].append(text)
            self.lines.update(new)
        for kind, place, what, data in done["findings"]:
            self.found(done["target"], kind, place, what, data)

    def found(self, target, kind, place, what, data):
        """Keep a finding, the first at its place."""
        place = re.sub(r"0x\w+|\d{5,}", "N", place)[:200]
        for known in self.findings:
            if (known["target"], known["kind"], known["place"]) == (target, kind, place):
                known["times"] += 1
                return
        entry = {"target": target, "kind": kind, "place": place, "what": what, "times": 1}
        if self._path:
            folder = self._path.with_name(self._path.name + ".findings")
            folder.mkdir(exist_ok=True)
            file = folder / f"{target}-{sha1(data).hexdigest()[:12]}"
            file.write_bytes(data)
            entry["file"] = str(file)
        self.findings.append(entry)
        print(f"{target}: {kind}: {place}\n    {what[-600:]}", flush=True)

    def save(self, every_s=0.0):
        if self._path and time.monotonic() - self._saved >= every_s:
            scratch = self._path.with_name(self._path.name + ".part")
            scratch.write_text(json.dumps({"targets": self.targets, "findings": self.findings}))
            scratch.replace(self._path)
            self._saved = time.monotonic()

    def corpus(self, name):
        return [base64.b64decode(text) for text in self.targets[name]["corpus"]]

    def show(self, names, spent):
        total = Counter()
        for name in names:
            entry = self.targets[name]
            total.update(runs=entry["runs"], cpu_s=entry["cpu_s"])
            print(
                f"{name:12} {entry['runs']:8} inputs, {len(entry['corpus']):5} kept,"
                f" {entry['cpu_s'] / 3600:.3f} CPU hours, slowest {entry['slowest']:.1f} s"
            )
        for package in ("inputs", "parse", "torchtext", "reading", "derive", "diagnosis", "rules"):
            folder = ROOT / "traceview" / package
            mine = sum(line.startswith(f"traceview/{package}/") for line in self.lines)
            print(f"  {package:10} {mine:6} of {sum(map(_lines, folder.rglob('*.py'))):6} lines")
        found = Counter(entry["kind"] for entry in self.findings)
        print(
            f"in all {total['runs']} inputs, {total['cpu_s'] / 3600:.3f} CPU hours"
            f" ({spent / 3600:.3f} now), findings: {dict(found) or 'none'}"
        )


def _lines(path):
    """Lines of functions that can be run."""
    found, codes = set(), [compile(path.read_text(encoding="utf-8"), str(path), "exec")]
    while codes:
        code = codes.pop()
        codes += [each for each in code.co_consts if hasattr(each, "co_code")]
        found |= {line for *_, line in code.co_lines() if line and line != code.co_firstlineno}
    return len(found)


def fuzz(names, minutes, processes, state):
    """Give the processes chunks until the time is over; CPU seconds."""
    from traceview.limits import Limits

    folder = Path(tempfile.mkdtemp(prefix="fuzzing-"))
    workers = [Worker(Limits().memory, folder, number) for number in range(processes)]
    until, spent = time.monotonic() + 60 * minutes, 0.0
    again = [(name, state.corpus(name)[at : at + 50]) for name in names
             for at in range(0, len(state.corpus(name)), 50)]  # fmt: skip
    try:
        while time.monotonic() < until or any(worker.target for worker in workers):
            for worker in workers:
                if worker.target is None and time.monotonic() < until:
                    if again:
                        name, replay = again.pop()
                    else:
                        name, replay = min(names, key=lambda n: state.targets[n]["cpu_s"]), None
                        state.targets[name]["cpu_s"] += 1e-3  # the next one gets another
                    worker.give(name, state.corpus(name), state.lines, replay)
            for pipe in connection.wait([worker.pipe for worker in workers], 1):
                worker = next(worker for worker in workers if worker.pipe is pipe)
                with contextlib.suppress(EOFError, OSError):
                    done = pipe.recv()
                    spent += done["cpu_s"]
                    state.add(done)
                    worker.target = None
            for worker in workers:
                if (ended := worker.ended()) is not None:
                    target, kind, string = ended
                    if target:
                        made = made_by(target)(string)
                        data = made[1] if made else string
                        state.found(target, kind, sha1(data).hexdigest()[:8], "", data)
                    worker.start()
            state.save(every_s=10)
    except KeyboardInterrupt:
        pass
    finally:
        for worker in workers:
            worker.process.kill()
        state.save()
        shutil.rmtree(folder, ignore_errors=True)
    return spent


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--state", type=Path)
    options.add_argument("--replay", action="store_true")
    options.add_argument("names", nargs="*")
    chosen = options.parse_args()
    if chosen.replay:
        fuzzed = Fuzzed(Path(tempfile.mkdtemp(prefix="fuzz-")))
        for name in chosen.names:
            _, finding = fuzzed.tried(Path(name).read_bytes(), whole=True)
            print(name, finding[2] if finding else "nothing wrong")
        return
    from fuzz_inputs import TARGETS

    names = [name for name in TARGETS if name.startswith(tuple(chosen.names) or "")]
    state = State(chosen.state, names)
    spent = fuzz(names, chosen.minutes, chosen.processes, state)
    state.show(names, spent)


if __name__ == "__main__":
    main()

"""Whole commands on mutated inputs of every kind, in this process: what they end with.

A subject is one input. Of a log it is a post-mortem, and then a report, a check or a comparison of
what that made; of a file in a run folder, or of a diagnosis, the commands that read it.
"""

import contextlib
import gzip
import io
import random
import shutil
import signal
import sys
import tarfile
import traceback
from functools import cache, partial
from pathlib import Path

import msgspec
from mutation_fixtures import log, names
from mutations import confuse, mutate
from recordings import unpack

from traceview.__main__ import main

#: What the documentation says that these commands may exit with.
CODES = (0, 1, 2, 3, 4)
#: An input of a few hundred KB that takes longer goes round in circles.
LIMIT_S = 120
#: Files of a recorded run, by pattern; the first one of each is mutated.
_RUN_FILES = {
    "manifest": "run.json",
    "events": "raw/cold/events-*.jsonl",
    "structured": "raw/cold/structured/*.log*",
    "torch_logs": "raw/cold/torch_logs.txt*",
    "compiled": "raw/cold/profile/compiled-*.json.gz",
    "eager": "raw/cold/profile/eager-*.json.gz",
    "lines": "raw/cold/profile/eager-*-lines.json.gz",
}
_RUNS = ("good-gb_item", "bad-rc_python_constant", "gpu-bm_no_sync")


class HungError(BaseException):
    """Not an Exception: nothing between the alarm and ``run`` may take it for one of its own."""


def subjects():
    """Every input that is mutated: its kind, a slash and its name."""
    yield from (f"log/{name}" for name in names())
    yield "archive/logs"
    yield from (f"run/{run}/{file}" for run in _RUNS for file in _RUN_FILES)
    yield "diagnosis/run"
    yield "diagnosis/job"


def hung(*_):
    """Handles the alarm."""
    raise HungError


def run(words, limit_s=LIMIT_S):
    """What is wrong with how ``traceview WORDS`` ends: its kind and more; None where nothing is."""
    before, sys.argv = sys.argv, ["traceview", *map(str, words)]
    signal.signal(signal.SIGALRM, hung)
    signal.alarm(limit_s)
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
            main()
    except SystemExit as end:
        text = err.getvalue()
        if end.code in CODES and "Traceback" not in text and "has a defect" not in text:
            return None
        return "code", f"{words[0]}: {end.code}: {text[-1000:]}"
    except HungError:
        return "hang", f"{words[0]}: more than {limit_s} s: {traceback.format_exc()[-600:]}"
    except BaseException:  # noqa: BLE001  # a crash is what is looked for
        return "crash", f"{words[0]}: {traceback.format_exc()[-1500:]}"
    finally:
        signal.alarm(0)
        sys.argv = before
    return "code", f"{words[0]}: none"


class Subject:
    """One input, its mutations, and the commands that read it; ``folder`` is its own."""

    def __init__(self, name, folder, limit_s=LIMIT_S):
        self.limit_s = limit_s
        kind, _, rest = name.partition("/")
        self.folder = Path(folder)
        self.clean = self.folder / "clean"
        prepare = {
            "log": partial(self._logs, rest),
            "archive": partial(self._logs, None),
            "run": partial(self._run, *rest.split("/")[:2]),
            "diagnosis": partial(self._diagnosis, rest),
        }[kind]
        self.data, self.path, self.commands = prepare()

    def wrong(self, seed):
        """(what was done, what is wrong or None) of mutation ``seed``."""
        if seed % 2:
            data, done = confuse(self.data, seed)
        else:
            mutated = mutate(self.data, seed)
            data, done = mutated.data, mutated.done
        self.path.write_bytes(data)
        for words in self.commands(seed):
            if (what := run(words, self.limit_s)) is not None:
                return done, what
        return done, None

    def _logs(self, name):
        data = log(name) if name else archive()
        folder = self.folder / "logs"
        folder.mkdir(parents=True)
        path = folder / "x.log"
        path.write_bytes(data)
        out = self.folder / "out"
        unchanged = self.folder / "unchanged.log"
        unchanged.write_bytes(data)

        def commands(seed):
            shutil.rmtree(out, ignore_errors=True)
            yield ["postmortem", "--workers", "1", "-o", out, path]
            if (out / "run.json").exists():
                after = self._after(seed, out)
                if self.clean in after and not self.clean.exists():
                    yield ["postmortem", "--workers", "1", "-o", self.clean, unchanged]
                yield after

        return data, path, commands

    def _run(self, name, file):
        run_folder = unpack(name, self.folder)
        path = min(run_folder.glob(_RUN_FILES[file]))
        data = path.read_bytes()
        if path.suffix == ".gz":  # plain bytes under the packed name: content decides
            data = gzip.decompress(data)
        shutil.copytree(run_folder, self.clean)

        def commands(seed):
            shutil.rmtree(run_folder / "tables", ignore_errors=True)
            yield self._after(seed, run_folder)

        return data, path, commands

    def _diagnosis(self, of):
        made = self.folder / "made"
        self.clean = self.folder / "diagnosis.json"
        if of == "run":
            run_folder = unpack(_RUNS[0], self.folder)
            assert run(["report", run_folder]) is None
            made = run_folder
        else:
            path = self.folder / "x.log"
            path.write_bytes(log("structured/breaks"))
            assert run(["postmortem", "--workers", "1", "-o", made, path]) is None
        data = msgspec.json.format((made / "diagnosis.json").read_bytes(), indent=1)
        self.clean.write_bytes(data)
        path = self.folder / "changed.json"
        return data, path, lambda seed: [self._after(seed, path, ("check", "compare"))]

    def _after(self, seed, made, commands=("report", "check", "compare")):
        """One of the commands that read what is ``made``, by ``seed``."""
        forms = {
            "report": ([], ["--json"], ["--markdown"]),
            "check": ([], *(["--format", form] for form in ("json", "sarif", "junit", "github"))),
            "compare": ([], ["--json"], ["--markdown"], ["--html"]),
        }
        rng = random.Random(seed)
        command = rng.choice(commands)
        form = rng.choice(forms[command])
        if command == "report":
            return ["report", *form, made]
        if command == "check":
            return ["check", *form, "--max-breaks", "0", "--max-recompiles", "1", made]
        return ["compare", *form, *rng.sample([self.clean, made], 2)]


@cache
def archive():
    """Several logs in one archive that is not packed, so that mutations reach its headers too."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name in ("structured/breaks", "textlog/breaks.torch_logs", "packed/resets"):
            data = log(name)[:100_000]
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return made.getvalue()

"""Many mutations of inputs of every kind: no crash, no hang, nothing under another compile.

    python benchmarks/bench_mutations.py [--rounds 10000] [--by-kind] [--minutes M] [--limit S]
                                         [--state FILE] [--processes 2] [--whole] [NAME…]

Without ``--whole``, logs go through their readers, and every record that was not touched must
still be under its own compile. With it, each mutated input goes through whole commands: logs and
archives through ``postmortem`` and then ``report``, ``check`` or ``compare``; a file of a run
folder through these three; a diagnosis through ``check`` and ``compare``. They must end with an
exit code that is documented, within S seconds each.

There are so many rounds of every input, or with ``--by-kind`` of all inputs of a kind together.
Seeds count from 0 for every input. FILE keeps how far each has come, so that a run that was ended
goes on where it was. The processes take ten mutations of an input at a time, and all inputs come
equally far. Prints a line for each input and one for each finding; names are whole ones or begin
with what is given.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import mutation_fixtures
import whole_commands
from whole_commands import HungError

BATCH = 10
LIMIT_S = 120


class Read:
    """A log and its reader: what ends up under another compile."""

    def __init__(self, name, folder, limit_s):
        self._log, self._limit_s = mutation_fixtures.Checked(name, Path(folder) / "log"), limit_s

    def wrong(self, seed):
        signal.signal(signal.SIGALRM, whole_commands.hung)
        signal.alarm(self._limit_s)
        try:
            mutated, wrong = self._log.wrong(seed)
            return mutated.done, ("misplaced", wrong[0][:200]) if wrong else None
        except HungError:
            return "", ("hang", f"more than {self._limit_s} s")
        except Exception:  # noqa: BLE001  # a crash is what is looked for
            return "", ("crash", traceback.format_exc()[-400:])
        finally:
            signal.alarm(0)


def kind_of(name):
    """Of a log its format, of a file in a run folder which file it is, else the name itself."""
    what, kind, *file = name.split("/")
    return {"log": kind, "run": file[-1] if file else kind}.get(what, name)


@cache
def subject(name, whole, limit_s):
    folder = tempfile.mkdtemp(prefix="mutations-")
    return (whole_commands.Subject if whole else Read)(name, folder, limit_s)


def batch(name, whole, limit_s, first, last, until):
    """(name, first, how many done, [(kind, seed, what)], slowest second, CPU seconds)."""
    findings, slowest, seed = [], 0.0, first
    log = subject(name, whole, limit_s)
    spent = time.process_time()
    while seed < last and time.time() < until:
        began = time.monotonic()
        done, wrong = log.wrong(seed)
        if wrong:
            findings.append((wrong[0], seed, f"{done}: {wrong[1]}"))
        slowest = max(slowest, time.monotonic() - began)
        seed += 1
    return name, first, seed - first, findings, slowest, time.process_time() - spent


def results(count, jobs):
    """What ``batch`` returns, in order; one whose process dies, also alone, is a finding.

    Processes are new in each call, as what one holds adds up.
    """
    while jobs:
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            for future in [pool.submit(batch, *job) for job in jobs]:
                try:
                    result = future.result()
                except BrokenProcessPool:  # one of those that ran killed it
                    yield alone(jobs.pop(0))
                    break
                jobs.pop(0)
                yield result


def alone(job):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as one:
        try:
            return one.submit(batch, *job).result()
        except BrokenProcessPool:
            name, *_, first, last, _ = job
            died = ("died", first, f"between seeds {first} and {last}")
            return name, first, last - first, [died], 0.0, 0.0


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=10_000)
    options.add_argument("--by-kind", action="store_true")
    options.add_argument("--minutes", type=float, default=1e6)
    options.add_argument("--limit", type=int, default=LIMIT_S)
    options.add_argument("--whole", action="store_true")
    options.add_argument("--state", type=Path)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("names", nargs="*")
    chosen = options.parse_args()
    every = list((whole_commands.subjects if chosen.whole else mutation_fixtures.names)())
    begun = tuple(chosen.names) or ("",)
    names = [name for name in every if name.startswith(begun)]
    kept = json.loads(chosen.state.read_text()) if chosen.state and chosen.state.exists() else {}
    for name in names:
        kept.setdefault(name, {"done": 0, "findings": []})
    of_kind = Counter(map(kind_of, every)) if chosen.by_kind else Counter()
    rounds = {name: -(-chosen.rounds // (of_kind[kind_of(name)] or 1)) for name in names}
    until = time.time() + 60 * chosen.minutes
    slowest, spent = Counter(), 0.0
    ahead = BATCH * chosen.processes  # of each log, before any goes on
    for end in range(ahead, max(rounds.values()) + ahead, ahead):
        jobs = [
            (
                name,
                chosen.whole,
                chosen.limit,
                seed,
                min(seed + BATCH, end, rounds[name]),
                until,
            )
            for name in names
            for seed in range(kept[name]["done"], min(end, rounds[name]), BATCH)
        ]
        for name, first, done, findings, seconds, cpu_s in results(chosen.processes, jobs):
            entry = kept[name]
            spent += cpu_s
            if first != entry["done"]:
                continue  # time was over before: these come again
            entry["done"] += done
            entry["findings"] += findings
            slowest[name] = max(slowest[name], seconds)
            for kind, seed, what in findings:
                print(f"{name} seed {seed}: {kind}: {what}", flush=True)
        if chosen.state:
            chosen.state.write_text(json.dumps(kept, indent=1))
        if time.time() > until:
            break
    total = Counter()
    for name in names:
        entry = kept[name]
        kinds = Counter(kind for kind, *_ in entry["findings"])
        total += Counter(kinds) + Counter(mutations=entry["done"])
        found = ", ".join(f"{n} {kind}" for kind, n in kinds.items()) or "nothing wrong"
        print(f"{name:28} {entry['done']:6} mutations, {found}, slowest {slowest[name]:.2f} s")
    if chosen.by_kind:
        done = Counter()
        for name in names:
            done[kind_of(name)] += kept[name]["done"]
        print("by kind " + ", ".join(f"{kind} {n:,}" for kind, n in done.items()))
    print(f"in all {dict(total)}, {spent:.0f} CPU seconds")


if __name__ == "__main__":
    main()

"""Many mutations of a recorded log of every kind: no crash, no hang, nothing under another compile.

    python benchmarks/bench_mutations.py [--rounds 10000] [--minutes M] [--state FILE]
                                         [--processes 2] [NAME…]

Seeds count from 0 for every log. FILE keeps how far each log has come, so that a run that was ended
goes on where it was. The processes take ten mutations of a log at a time, and all logs come equally
far. Prints a line for each log and one for each finding.
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
from functools import cache
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import mutation_fixtures

BATCH = 10
HANG_S = 120


@cache
def checked(name):
    folder = tempfile.mkdtemp(prefix="mutations-")
    return mutation_fixtures.Checked(name, Path(folder) / "log")


def timed_out(*_):
    raise TimeoutError(f"more than {HANG_S} s")


def batch(name, first, last, until):
    """(name, first, how many done, [(kind, seed, what)], slowest second); ``last`` is not done."""
    signal.signal(signal.SIGALRM, timed_out)
    findings, slowest, seed = [], 0.0, first
    log = checked(name)
    while seed < last and time.time() < until:
        began = time.monotonic()
        signal.alarm(HANG_S)
        try:
            mutated, wrong = log.wrong(seed)
            if wrong:
                findings.append(("misplaced", seed, f"{mutated.done}: {wrong[0][:200]}"))
        except TimeoutError as error:
            findings.append(("hang", seed, str(error)))
        except Exception:  # noqa: BLE001  # a crash is what is looked for
            findings.append(("crash", seed, traceback.format_exc()[-400:]))
        finally:
            signal.alarm(0)
        slowest = max(slowest, time.monotonic() - began)
        seed += 1
    return name, first, seed - first, findings, slowest


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=10_000)
    options.add_argument("--minutes", type=float, default=1e6)
    options.add_argument("--state", type=Path)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("names", nargs="*")
    chosen = options.parse_args()
    names = chosen.names or list(mutation_fixtures.names())
    kept = json.loads(chosen.state.read_text()) if chosen.state and chosen.state.exists() else {}
    for name in names:
        kept.setdefault(name, {"done": 0, "findings": []})
    until = time.time() + 60 * chosen.minutes
    slowest = Counter()
    ahead = BATCH * chosen.processes  # of each log, before any goes on
    with ProcessPoolExecutor(chosen.processes, mp_context=get_context("spawn")) as pool:
        for end in range(ahead, chosen.rounds + ahead, ahead):
            due = min(end, chosen.rounds)
            jobs = [
                pool.submit(batch, name, seed, min(seed + BATCH, due), until)
                for name in names
                for seed in range(kept[name]["done"], due, BATCH)
            ]
            for job in jobs:
                name, first, done, findings, seconds = job.result()
                entry = kept[name]
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
    print(f"in all {dict(total)}")


if __name__ == "__main__":
    main()

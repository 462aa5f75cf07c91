"""Does traceview find the speedup that the bare script finds for itself?

Each script, run with ``--bare``, prints JSON with ``eager_ms``, ``compiled_ms`` and ``speedup``
of its own synchronised, warm loop. It is run bare, under ``traceview collect``, and bare again;
the figures stand side by side. Where the analysis can't run (a GPU machine without polars),
``--collect`` keeps the run folders, and ``--compare`` reads them later.

Where Python sets the pace, one script's figure differs from process to process by more than any
tool's error, and on a shared machine from one second to the next. ``--by-turns`` takes that out:
the script's own loop runs in the collected process itself, after each of traceview's blocks
(``scripts/by_turns.py``; not where a step ends in an optimizer).

    python benchmarks/bench_agreement.py SCRIPT... [--keep DIR] [--by-turns]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

SCENARIOS = Path(__file__).resolve().parents[1] / "fixtures" / "scenarios"
BY_TURNS = Path(__file__).with_name("scripts") / "by_turns.py"


def last_json(stdout: str) -> dict[str, float]:
    """A script's own figure: the last line of its stdout that is JSON."""
    return json.loads([line for line in stdout.splitlines() if line.startswith("{")][-1])


def bare(script: Path) -> dict[str, float]:
    """The script's own figure, alone in its process."""
    done = subprocess.run(
        [sys.executable, str(script), "--bare"], capture_output=True, text=True, check=True
    )
    return last_json(done.stdout)


def together(script: Path, folder: Path) -> dict[str, float]:
    """Collect the script; its own figure, from its own loop by turns with traceview's blocks."""
    command = [sys.executable, "-m", "traceview", "collect", "--force", "--run-to-end"]
    done = subprocess.run(
        [*command, "-o", str(folder), str(BY_TURNS), str(script)],
        capture_output=True,
        text=True,
        check=True,
    )
    return last_json(done.stdout)


def collect(script: Path, folder: Path) -> None:
    """Run the script under traceview."""
    command = [sys.executable, "-m", "traceview", "collect", "--force", "-o", str(folder)]
    subprocess.run([*command, str(script)], check=True, stdout=subprocess.DEVNULL)


def found(folder: Path) -> dict[str, object]:
    """The verdict of the run folder."""
    done = subprocess.run(
        [sys.executable, "-m", "traceview", "report", "--json", "--refresh", str(folder)],
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)["verdict"]


def record(scripts: list[Path], keep: Path, *, by_turns: bool) -> None:
    """Each script bare, collected, bare again: ``keep/NAME`` and ``keep/NAME.bare.json``."""
    for script in scripts:
        if by_turns:
            figures = [together(script, keep / script.stem)]
            (keep / f"{script.stem}.bare.json").write_text(json.dumps(figures))
            continue
        figures = [bare(script)]
        collect(script, keep / script.stem)
        figures.append(bare(script))
        (keep / f"{script.stem}.bare.json").write_text(json.dumps(figures))


def compare(keep: Path) -> None:
    """Print the table."""
    print("| script | bare | traceview | difference | interval | clock, pairs |")
    print("| --- | --- | --- | --- | --- | --- |")
    for path in sorted(keep.glob("*.bare.json")):
        name = path.name.removesuffix(".bare.json")
        speedups = [figure["speedup"] for figure in json.loads(path.read_text())]
        verdict = found(keep / name)
        own, ours = statistics.mean(speedups), verdict["speedup"]
        low, high = verdict["speedup_interval"]
        shown = ", ".join(f"{value:.3f}" for value in speedups)
        print(
            f"| {name} | {shown}× | {ours:.3f}× | {100 * (ours / own - 1):+.1f} % "
            f"| {low:.3f}–{high:.3f} | {verdict['clock']}, {verdict['blocks']} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scripts", nargs="*", type=Path)
    parser.add_argument("--keep", type=Path, default=Path("agreement"))
    parser.add_argument("--collect", action="store_true", help="only run; compare later")
    parser.add_argument("--compare", action="store_true", help="only compare what --keep holds")
    parser.add_argument("--by-turns", action="store_true", help="in one process, block by block")
    args = parser.parse_args()
    args.keep.mkdir(parents=True, exist_ok=True)
    if not args.compare:
        record(
            args.scripts or sorted((SCENARIOS / "healthy").glob("*.py")),
            args.keep,
            by_turns=args.by_turns,
        )
    if not args.collect:
        compare(args.keep)


if __name__ == "__main__":
    main()

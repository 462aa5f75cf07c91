"""Does traceview find what is planted on purpose? Live, on this machine's GPU or CPU.

Each script of ``fixtures/scenarios/truth`` runs under ``traceview collect`` and measures what it
planted in the same process; the table has that beside what the derived tables say. Where the
analysis can't run (a GPU machine without polars), ``--collect`` keeps the run folders, and
``--compare`` reads them later.

    python benchmarks/bench_truth.py [SCRIPT...] [--keep DIR]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
SCENARIOS = FIXTURES / "scenarios" / "truth"
TRUTH = "truth.json"


def has_cuda() -> bool:
    code = "import torch; raise SystemExit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def scripts(names: list[str], cuda: bool) -> Iterator[Path]:
    """Those with these names, or all that run on this machine."""
    for path in sorted(SCENARIOS.glob("*.py")):
        other = "cpu" if cuda else "cuda"
        runs_here = f'NEEDS = "{other}"' not in path.read_text(encoding="utf-8")
        if path.stem in names or (not names and runs_here):
            yield path


def collect(script: Path, folder: Path) -> None:
    """Run the script under traceview; what it planted stands in the run folder afterwards."""
    truth = folder.with_suffix(".json")
    command = [sys.executable, "-m", "traceview", "collect", "--force", "-o", str(folder)]
    done = subprocess.run(
        [*command, str(script), "--truth", str(truth.resolve())], stdout=subprocess.DEVNULL
    )
    if done.returncode or not truth.exists():
        print(f"{script.stem}: ended with {done.returncode}", file=sys.stderr)
        return
    truth.replace(folder / TRUTH)


def compare(keep: Path, device: str) -> None:
    """Print the table of all run folders in ``keep``."""
    from traceview.derive import derive
    from traceview.parse import parse_run
    from traceview.run import Run

    sys.path.append(str(FIXTURES))
    import truths

    print("| script | stance | found as | planted | found | difference |")
    print("| --- | --- | --- | --- | --- | --- |")
    for path in sorted(keep.glob(f"*/{TRUTH}")):
        tables = derive(parse_run(Run.open(path.parent)), {})
        text = path.read_text(encoding="utf-8")
        for one in truths.compare(tables, path.parent.name, device, text):
            unit = one.plant.unit
            found = "nothing" if one.found is None else f"{one.found:.6g} {unit}"
            off = "" if one.difference is None else f"{100 * one.difference:+.1f} %"
            cells = (one.plant.script, one.stance, one.plant.name, f"{one.planted:.6g} {unit}")
            print(f"| {' | '.join(cells)} | {found} | {off} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scripts", nargs="*", help="names; all that run here if none is given")
    parser.add_argument("--keep", type=Path, default=Path("truth"), help="folder for the runs")
    parser.add_argument("--collect", action="store_true", help="only run; compare later")
    parser.add_argument("--compare", action="store_true", help="only compare what --keep holds")
    parser.add_argument("--device", choices=("cpu", "gpu"), help="of the runs; else this machine's")
    args = parser.parse_args()
    args.keep.mkdir(parents=True, exist_ok=True)
    cuda = args.device == "gpu" if args.device else has_cuda()
    if not args.compare:
        for script in scripts(args.scripts, cuda):
            collect(script, args.keep / script.stem)
    if not args.collect:
        compare(args.keep, "gpu" if cuda else "cpu")


if __name__ == "__main__":
    main()

"""``traceview try --apply``: an accepted patch is written, only into the file that was measured."""

import hashlib
import json
from difflib import unified_diff

import pytest
from cli_runs import Cli
from trial_events import measured, write

from traceview.run import Ending, Manifest, PassRecord, Run
from traceview.trials import Plan, Remedy, Results, results, to_json
from traceview.trials.rounds import Process

OLD = "a = 1\nb = 2\n\x0cc = 3\nd = 4\n"
NEW = "a = 1\nb = 2\nx = 0\n\x0cc = 33\nd = 4\n"


def diff(old=OLD, new=NEW, name="train.py"):
    """As traceview/diagnosis/ruling.py writes one."""
    sides = [[f"{line}\n" for line in text.split("\n")[:-1]] for text in (old, new)]
    return "".join(unified_diff(*sides, name, name, n=1))


@pytest.fixture
def run(tmp_path):
    (tmp_path / "train.py").write_text(OLD)
    manifest = Manifest(
        target=["train.py"],
        cwd=str(tmp_path),
        passes=[PassRecord("cold", "raw/cold", ending=Ending("exit", 0))],
    )
    run = Run.create(tmp_path / "run", manifest)
    source = {
        "event": "source", "t": 1.0, "file": str(tmp_path / "train.py"),
        "copy": "raw/sources/train.py", "sha256": hashlib.sha256(OLD.encode()).hexdigest(),
    }  # fmt: skip
    write(run.folder / "raw" / "cold", [source])
    remedies = (Remedy("patch train.py:3", patch=diff()), Remedy("no_grad", ("no_grad",)),
                Remedy("patch train.py:1", patch=diff()))  # fmt: skip
    events = [*measured(remedies[0].name, 1.3), *measured("no_grad", 1.2),
              *measured(remedies[2].name, 0.9)]  # fmt: skip
    plan = Plan(remedies, "compiled", 60.0, together=False)
    made = results(plan, lambda *_: Process(write(tmp_path / "raw", events)), None)
    record = Results(
        target="train.py", created=None, traceview="0.1", baseline="compiled", budget_seconds=60.0,
        environment={}, trials=made.trials, recommended=made.recommended, not_tried=(),
    )  # fmt: skip
    (run.folder / "trials.json").write_text(json.dumps(to_json(record)))
    return run


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


def test_the_file_is_changed_and_kept(cli, run, tmp_path):
    cli("try", "--apply", "1", run.folder)
    assert cli.code == 0
    assert (tmp_path / "train.py").read_text() == NEW
    assert (tmp_path / "train.py.orig").read_text() == OLD
    assert "Wrote patch train.py:3 into" in cli.out
    assert not list(tmp_path.glob(".*.part"))


def test_a_file_that_has_changed_is_left_alone(cli, run, tmp_path):
    (tmp_path / "train.py").write_text(OLD + "\n")
    cli("try", "--apply", "1", run.folder)
    assert cli.code == 2
    assert "is not the file that was measured: it has changed since." in cli.err
    assert (tmp_path / "train.py").read_text() == OLD + "\n"
    assert not (tmp_path / "train.py.orig").exists()


def test_an_earlier_copy_is_not_lost(cli, run, tmp_path):
    (tmp_path / "train.py.orig").write_text("mine")
    cli("try", "--apply", "1", run.folder)
    assert cli.code == 2
    assert (tmp_path / "train.py").read_text() == OLD
    assert (tmp_path / "train.py.orig").read_text() == "mine"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (2, "it changes settings, not a file"),
        (3, "it was not accepted"),
        (4, "has 3 trials, not 4"),
    ],
)
def test_what_cannot_be_applied(cli, run, number, said):
    cli("try", "--apply", number, run.folder)
    assert cli.code == 2
    assert said in cli.err


def test_it_needs_results(cli, run):
    (run.folder / "trials.json").unlink()
    cli("try", "--apply", "1", run.folder)
    assert cli.code == 4
    cli("try", "--apply", "1", "train.py")
    assert cli.code == 2

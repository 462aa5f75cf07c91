"""A few hundred mutations of logs of every kind; bench_mutations.py makes the long run."""

import re
import time

import pytest
import whole_commands
from attribution import structured_records, undamaged
from mutation_fixtures import Checked, log, names
from mutations import MUTATIONS, ODD_VALUES, confuse, mutate, split

ROUNDS = 12
#: A reader that needs this long for 300 KB goes round in circles.
LONGEST_S = 60


@pytest.mark.parametrize("name", list(names()))
def test_damage_moves_no_record_to_another_compile(tmp_path, name):
    checked = Checked(name, tmp_path / "log")
    assert checked.clean or name.startswith("chromium"), "the clean log is recognised"
    for seed in range(ROUNDS):
        began = time.monotonic()
        mutated, wrong = checked.wrong(seed)
        assert not wrong, f"seed {seed}, {mutated.done}: {wrong[:3]}"
        assert time.monotonic() - began < LONGEST_S, f"seed {seed}, {mutated.done}"


#: Of every kind of log and every file of a run folder one: the others have the benchmark.
OF_EACH = {
    re.sub(r"^(log/\w+)/.*|^run/.*/", r"\1", name): name for name in whole_commands.subjects()
}


@pytest.mark.live
@pytest.mark.parametrize("name", OF_EACH.values())
def test_damage_ends_no_command(tmp_path, name):
    """The first two seeds: a mutation of the bytes, and one of values."""
    subject = whole_commands.Subject(name, tmp_path, LONGEST_S)
    for seed in (0, 1):
        done, wrong = subject.wrong(seed)
        assert wrong is None, f"seed {seed}, {done}: {wrong}"


def test_a_whole_command_that_crashes_or_hangs_is_seen(monkeypatch):
    def hang():
        while True:
            pass

    for wrong, kind in ((lambda: 1 / 0, "crash"), (hang, "hang"), (lambda: None, "code")):
        monkeypatch.setattr(whole_commands, "main", wrong)
        assert whole_commands.run(["report"], limit_s=1)[0] == kind


def test_confused_values_are_the_same_for_the_same_seed_and_of_every_sort():
    data = log("kineto/trace")
    assert confuse(data, 5) == confuse(data, 5)
    done = [what for seed in range(200) for what in confuse(data, seed)[1]]
    assert {what.split()[0] for what in done} == {"value", "other", "key", "unnamed"}
    found = b"".join(confuse(data, seed)[0] for seed in range(200))
    assert all(odd in found for odd in ODD_VALUES)


def test_a_mutation_is_the_same_for_the_same_seed():
    data = log("structured/resets")
    assert mutate(data, 5) == mutate(data, 5)
    assert len({mutate(data, seed).data for seed in range(20)}) == 20


def test_every_mutation_happens_and_lines_keep_their_origin():
    data = log("structured/resets")
    clean = split(data)
    done = set()
    for seed in range(60):
        mutated = mutate(data, seed)
        done.update(mutated.done)
        for line in mutated.lines:
            assert line.data.count(b"\n") <= 1
            assert line.origin is None or line.data == clean[line.origin]
    assert done == {mutation.__name__ for mutation in MUTATIONS}


def test_most_records_of_a_mutated_log_are_undamaged():
    """Else the check above would say little."""
    data = log("structured/resets")
    records = structured_records(split(data))
    shares = [len(undamaged(records, mutate(data, s).lines)) / len(records) for s in range(40)]
    assert sum(shares) / len(shares) > 0.6

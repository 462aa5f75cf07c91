import gzip
import random

import pytest
from textlog_runs import HEAD, lines, make, read, recorded

from traceview.parse.damage import Damage
from traceview.parse.textlogs import read_pass


@pytest.mark.parametrize("name", ["breaks", "recompiles", "training", "autotune", "suppressed"])
def test_damaged_text_is_read_as_far_as_it_goes(tmp_path, name):
    """Cut, doubled, swapped and overwritten at random: rows may be lost, nothing is raised."""
    logs, stderr = recorded(name)
    dice = random.Random(name)
    whole, _ = read(tmp_path / "whole", logs=logs, stderr=stderr)
    for turn in range(6):
        damaged = [_damage(dice, data) for data in (logs, stderr)]
        tables, _ = read(tmp_path / str(turn), logs=damaged[0], stderr=damaged[1])
        assert set(tables) == set(whole)


def _damage(dice, data):
    broken = bytearray(data[dice.randrange(len(data) // 4) : -dice.randrange(1, len(data) // 4)])
    for _ in range(40):
        at = dice.randrange(len(broken))
        broken[at : at + dice.randrange(30)] = dice.randbytes(dice.randrange(30))
    return bytes(broken)


def test_lines_of_several_processes_are_put_together_each_for_itself(tmp_path):
    one = lines(
        "V1121 10:00:00.001000 1 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks]",
        "Graph break in user code at /p/a.py:1\nGraph Break Reason: first\n  Explanation: e1",
    ).splitlines(keepends=True)
    two = [line.replace(".001000 1 ", ".001000 2 ").replace("1\n", "2\n") for line in one]
    mixed = "".join(line for pair in zip(one, two, strict=True) for line in pair)

    tables, damage = read(tmp_path, logs=mixed)

    found = tables["graph_breaks"].select("compile_key", "user_line", "explanation").rows()
    assert sorted(found) == [("cold:1:0:0/0", 1, "e1"), ("cold:2:0:0/0", 2, "e2")]
    assert damage.total == 0


def test_a_line_without_end_costs_bounded_memory_and_hides_nothing_behind_it(tmp_path):
    warning = b"/p/t.py:3: UserWarning: after it\n  warnings.warn(x)\n"
    stderr = b"x" * 5_000_000 + b" tail\n" + b"\r 50% done" * 400_000 + b"\n" + warning
    tables, _ = read(tmp_path, stderr=stderr)
    row = tables["warnings"].row(0, named=True)
    assert (row["message"], row["raw_line"]) == ("after it", 3)


def test_line_numbers_hold_behind_blocks_that_concern_nobody(tmp_path):
    noise = b"step 12 loss 0.25\n" * 100_000
    stderr = noise + f"W{HEAD}_inductor/utils.py:1] Not enough SMs to use max\n".encode() + noise
    tables, _ = read(tmp_path, stderr=stderr)
    assert tables["warnings"]["raw_line"].to_list() == [100_001]


def test_colours_are_taken_off_and_markup_is_left_alone(tmp_path):
    text = "\x1b[33m<img src=x onerror=alert(1)>\x1b[0m & \x1b[1;31mred\x1b[0m"
    tables, _ = read(tmp_path, stderr=lines(f"W{HEAD}_inductor/x.py:1]", text))
    assert tables["warnings"]["message"].to_list() == ["<img src=x onerror=alert(1)> & red"]


def test_a_cut_archive_gives_what_is_in_it(tmp_path):
    run, record = make(tmp_path)
    packed = gzip.compress(recorded("breaks")[0])
    (run.raw(record) / "torch_logs.txt.gz").write_bytes(packed[: len(packed) * 3 // 4])
    damage = Damage()
    tables = read_pass(run, record, damage)

    assert tables["graph_breaks"].height >= 1
    found = damage.frame("cold").select("file", "kind").rows()
    assert ("raw/cold/torch_logs.txt.gz", "truncated") in found

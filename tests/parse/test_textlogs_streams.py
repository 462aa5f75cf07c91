"""Text logs from anywhere: mixed with other people's lines, of several processes, in batches."""

from __future__ import annotations

import io
import random

import polars as pl
import pytest
from textlog_runs import HEAD, lines, read_stream, recorded

from traceview.inputs.streams import DamagedInput
from traceview.parse.damage import Damage
from traceview.parse.textlogs import sink

FOREIGN = (
    b"[trainer.py:88][INFO] step=7 loss=2.3\n", b"\r 37%|###7      | 3/10\r\n", b"\n",
    b"Traceback (most recent call last):\n", b"V1121 10:00:00.0 cut short torch/x.py:1\n",
)  # fmt: skip


def read(data, **options):
    """Tables and damage, as kind → times, of a log with these bytes."""
    damage, parts = Damage(), {}
    for name, frame in read_stream(io.BytesIO(data), "a.log", damage, **options):
        parts.setdefault(name, []).append(frame)
    found = damage.frame("logs")
    tables = {name: pl.concat(frames) for name, frames in parts.items()}
    return tables, dict(zip(found["kind"], found["times"], strict=True))


def without_lines(frame):
    return frame.drop("raw_line")


@pytest.mark.parametrize("name", ["breaks", "recompiles", "training", "autotune", "bytes_moved"])
def test_foreign_lines_between_any_two_change_nothing_and_are_no_damage(name):
    dice, logs = random.Random(name), recorded(name)[0]
    mixed = b"".join(
        b"".join(dice.choices(FOREIGN, k=dice.randrange(4))) + line
        for line in logs.splitlines(keepends=True)
    )
    alone, _ = read(logs)
    tables, damage = read(mixed)
    assert damage == {}
    assert set(tables) == set(alone)
    for table, frame in tables.items():
        assert without_lines(frame).equals(without_lines(alone[table]))


def test_lines_of_two_processes_in_turns_are_kept_apart():
    logs = recorded("breaks")[0].splitlines(keepends=True)
    pids = [line.split()[2] for line in logs if b".py:" in line]
    other = [line.replace(b" %s torch/" % pids[0], b" 999 torch/") for line in logs]
    alone, _ = read(b"".join(logs))
    tables, _ = read(b"".join(line for pair in zip(logs, other, strict=True) for line in pair))
    breaks = tables["graph_breaks"]
    assert breaks.height == 2 * alone["graph_breaks"].height
    mine = breaks.filter(pl.col("compile_key").str.contains(":999:"))
    assert mine["reason"].to_list() == alone["graph_breaks"]["reason"].to_list()


def test_a_rank_learnt_from_any_line_of_a_process_counts_for_all_of_them():
    first = lines(f"W{HEAD}_inductor/x.py:1]", "before the process group")
    second = lines(f"[rank3]:W{HEAD}_inductor/x.py:2]", "after it")
    tables, _ = read((first + second).encode())
    assert tables["warnings"]["rank"].to_list() == [3, 3]


def test_a_capture_has_autotuning_tables_and_warnings_of_python():
    tables, damage = read(recorded("autotune")[1])
    assert damage == {}
    assert tables["autotune_choices"].height == 2
    assert set(tables["autotune_choices"]["compile_id"]) == {"0/0"}
    assert {"python_warning", "complex_fallback"} <= set(
        read(recorded("noise")[1])[0]["warnings"]["kind"]
    )


def test_rows_leave_in_batches_when_a_table_grows_large(monkeypatch):
    whole, _ = read(recorded("training")[0])
    monkeypatch.setattr(sink, "_MOST", 8 << 10)
    batches = list(read_stream(io.BytesIO(recorded("training")[0]), "a.log", Damage()))
    assert len(batches) > len(whole)
    fusions = pl.concat([frame for name, frame in batches if name == "fusions"])
    assert fusions["times"].sum() == whole["fusions"]["times"].sum()
    graphs = pl.concat([frame for name, frame in batches if name == "graphs"])
    assert graphs["text"].to_list() == whole["graphs"]["text"].to_list()


def test_what_was_read_before_the_stream_broke_is_kept():
    class Broken(io.BytesIO):
        def read1(self, size=-1):
            data = super().read1(size)
            if not data:
                raise DamagedInput("truncated", "the packed file ends before its end mark")
            return data

    damage = Damage()
    tables = dict(read_stream(Broken(recorded("breaks")[0]), "a.log", damage))
    assert tables["graph_breaks"].height == 4
    assert damage.frame("logs")["kind"].to_list() == ["truncated"]


def test_a_message_without_end_takes_bounded_memory(monkeypatch):
    from traceview.parse.messages import finding

    monkeypatch.setattr(finding, "OPEN_BYTES", 10_000)
    head = f"V{HEAD}_inductor/x.py:1] [0/0] [__output_code]".encode()
    text = b"Output code: \n" + b"x = 1\n" * 20_000
    data = b"".join(head + b" " + line + b"\n" for line in text.split(b"\n"))
    tables, _ = read(data)
    assert len(tables["graphs"]["text"][0]) < 10_000

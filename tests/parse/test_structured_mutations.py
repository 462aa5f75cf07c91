"""Seeded damage: no crash, and no row ever stands under another compile's id than its record's."""

import json
import random

import pytest
from structured_log_tools import at, read, record, recorded

TABLES = (
    "compile_phases",
    "guards",
    "graph_breaks",
    "recompiles",
    "cache_events",
    "graphs",
    "symbols",
)
FOREIGN = (
    b"hello\n",
    b"\0\0\0\n",
    b"\n",
    b"\t\n",
    b"\xff\xfe\n",
    b"V1120 20:09:53.524000 1 x.py:1] {}\n",
)


def small(name):
    """A recorded log without its heaviest lines, so that a few hundred rounds take seconds."""
    lines = recorded(name).split(b"\n")
    return b"\n".join(line for line in lines if len(line) < 2000)


LOGS = {
    "resets": small("resets"),
    "autograd": small("autograd"),
    "breaks": small("breaks")[:200_000],
}


def cut(log, rng):
    return log[: rng.randrange(len(log))]


def lose(log, rng):
    start = rng.randrange(len(log))
    return log[:start] + log[start + rng.randrange(1, 5000) :]


def flip(log, rng):
    data = bytearray(log)
    for _ in range(rng.randrange(1, 30)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def insert(log, rng):
    lines = log.split(b"\n")
    for _ in range(rng.randrange(1, 10)):
        lines.insert(rng.randrange(len(lines)), rng.choice(FOREIGN)[:-1])
    return b"\n".join(lines)


def shuffle(log, rng):
    lines = log.split(b"\n")
    start = rng.randrange(len(lines))
    part = lines[start : start + 60]
    rng.shuffle(part)
    return b"\n".join([*lines[:start], *part, *lines[start + 60 :]])


def duplicate(log, rng):
    start = rng.randrange(len(log))
    return log[:start] + log[start : start + 3000] + log[start:]


def identity(line):
    """Compile id of an envelope line, read without the reader under test."""
    start = line.index(b"] {") + 2
    envelope = json.loads(line[start:].decode("utf-8", "replace"))
    frame = envelope.get("frame_id")
    if frame is not None and envelope.get("frame_compile_id") is None:
        return None
    frame = None if frame is None else f"{frame}/{envelope['frame_compile_id']}"
    autograd = envelope.get("compiled_autograd_id")
    autograd = None if autograd is None else f"!{autograd}"
    return "/".join(part for part in (autograd, frame) if part) or None


@pytest.mark.parametrize("mutate", [cut, lose, flip, insert, shuffle, duplicate])
@pytest.mark.parametrize("name", list(LOGS))
def test_damage_never_moves_a_row_to_another_compile(tmp_path, name, mutate):
    rng = random.Random(f"{name} {mutate.__name__}")
    for _ in range(20):
        log = mutate(LOGS[name], rng)
        tables, _ = read(tmp_path, log)
        lines = log.split(b"\n")
        for table in TABLES:
            for line, compile_id in tables[table].select("raw_line", "compile_id").rows():
                assert identity(lines[line - 1]) == compile_id


@pytest.mark.parametrize("name", list(LOGS))
def test_a_foreign_line_anywhere_loses_no_row(tmp_path, name):
    rng = random.Random(name)
    whole, _ = read(tmp_path, LOGS[name])
    for _ in range(20):
        lines = LOGS[name].split(b"\n")
        lines.insert(rng.randrange(1, len(lines) - 1), b"foreign")
        tables, damage = read(tmp_path, b"\n".join(lines))
        assert damage.total == damage_of_whole(tmp_path, name) + 1
        for table in TABLES:
            assert tables[table].drop("raw_line").equals(whole[table].drop("raw_line"))


def damage_of_whole(tmp_path, name):
    return read(tmp_path, LOGS[name])[1].total


def test_a_long_history_of_resets_keeps_every_compile_apart(tmp_path):
    log = b"".join(
        record("dynamo_start", {"stack": []}, **at(frame)) for _ in range(200) for frame in range(3)
    )
    tables, _ = read(tmp_path, log)
    assert tables["compiles"]["compile_key"].n_unique() == 600
    assert tables["compiles"]["epoch"].max() == 199

"""Every damage to a recorded structured log: counted by kind and place, nothing else lost."""

import gzip
import random
import re

import pytest
from logs import structured
from reading import counts, keys, lost, rows, tables_of

HEAD = re.compile(rb"^V\d{4} ", re.MULTILINE)
NAMES = ["resets", "autograd", "failures"]
LOGS = {name: structured(name) for name in NAMES}


def starts(log):
    """Where records begin."""
    return [match.start() for match in HEAD.finditer(log)]


def line_at(log, place):
    return log.count(b"\n", 0, place) + 1


def payload_of(log, start):
    """Where the payload of the record at ``start`` begins and ends; None if it has none."""
    head = log.index(b"\n", start) + 1
    end = head
    while log[end : end + 1] == b"\t":
        end = log.index(b"\n", end) + 1
    return (head, end) if end > head else None


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clean")
    return {name: tables_of(folder / name, log) for name, log in LOGS.items()}


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def damaged(tmp_path, data):
    return tables_of(tmp_path / "damaged", data)


def a_payload(log, least_lines=3, kinds=(b'"chromium_event"',)):
    """(start, head, end) of a record in the middle that has a long payload."""
    found = []
    for start in starts(log):
        place = payload_of(log, start)
        line = log[start : log.index(b"\n", start)]
        if place and any(kind in line for kind in kinds):
            head, end = place
            if log.count(b"\n", head, end) >= least_lines:
                found.append((start, head, end))
    return found[len(found) // 2]


def frames(whole, tables):
    """Frames of which something is missing: a compile over the limit is named by the first one."""
    return {key.rpartition("/")[0] for key in keys(whole, lost(whole, tables)) if key}


def test_the_clean_logs_are_clean(clean, name):
    tables, damage = clean[name]
    assert damage.total == 0
    assert tables["compiles"].height > 0


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9])
def test_cut_anywhere(tmp_path, clean, name, share):
    log = LOGS[name]
    place = int(len(log) * share)
    tables, damage = damaged(tmp_path, log[:place])
    begun = [start for start in starts(log) if start < place]
    assert set(counts(damage)) <= {"truncated", "bad_json"}
    assert {line for _, line in counts(damage).values()} <= {line_at(log, begun[-1])}
    up_to_here, _ = damaged(tmp_path, log[: begun[-1]])
    assert not lost(up_to_here, tables).keys() - in_open_compiles(up_to_here, tables)


def in_open_compiles(before, after):
    """Rows of compiles that the last, cut record belongs to: they may say more than before."""
    changed = lost(before, after)
    touched = keys(before, changed)
    return {row for row in changed if any(repr(key) in row[1] for key in touched if key)}


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_cut_off_at_the_front(tmp_path, clean, name, share):
    log = LOGS[name]
    begins = [start for start in starts(log) if start > len(log) * share]
    tables, damage = damaged(tmp_path, log[int(len(log) * share) :])
    rest, _ = damaged(tmp_path, log[begins[0] :])
    assert rows(tables) == rows(rest)
    assert set(counts(damage)) <= {"foreign_line"}


def test_a_record_that_is_lost_takes_nothing_with_it(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    start, _, end = a_payload(log, kinds=(b"dynamo_cpp_guards_str", b"chromium_event"))
    tables, damage = damaged(tmp_path, log[:start] + log[end:])
    assert damage.total == 0
    assert len(frames(whole, tables)) <= 1


def test_a_lost_payload_line_is_a_bad_digest(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    start, head, _ = a_payload(log)
    second = log.index(b"\n", head) + 1
    tables, damage = damaged(tmp_path, log[:head] + log[second:])
    assert counts(damage)["bad_digest"] == (1, line_at(log, start))
    assert len(frames(whole, tables)) <= 1


def test_a_doubled_payload_line_is_a_bad_digest(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    start, head, _ = a_payload(log)
    second = log.index(b"\n", head) + 1
    tables, damage = damaged(tmp_path, log[:second] + log[head:second] + log[second:])
    assert counts(damage)["bad_digest"] == (1, line_at(log, start))
    assert len(frames(whole, tables)) <= 1


def test_a_doubled_record_loses_nothing(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    start, _, end = a_payload(log, kinds=(b"dynamo_cpp_guards_str", b"aot_", b"artifact"))
    tables, damage = damaged(tmp_path, log[:end] + log[start:end] + log[end:])
    assert damage.total == 0
    assert not lost(whole, tables)


def test_a_foreign_line_between_records_costs_nothing(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    begins = starts(log)
    place = begins[len(begins) // 2]
    data = log[:place] + b"NCCL WARN something else\n" + log[place:]
    tables, damage = damaged(tmp_path, data)
    assert counts(damage) == {"foreign_line": (1, line_at(log, place))}
    assert not lost(whole, tables)


def test_a_foreign_line_inside_a_payload_costs_nothing(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    _, head, _ = a_payload(log)
    second = log.index(b"\n", head) + 1
    data = log[:second] + b"NCCL WARN something else\n" + log[second:]
    tables, damage = damaged(tmp_path, data)
    assert counts(damage) == {"foreign_line": (1, line_at(log, second))}
    assert not lost(whole, tables)


@pytest.mark.parametrize("place", ["envelope", "payload", "between"])
def test_a_byte_that_is_no_utf8_costs_at_most_its_record(tmp_path, clean, name, place):
    log, (whole, _) = LOGS[name], clean[name]
    start, head, end = a_payload(log)
    at = {"envelope": log.index(b'"', start) + 3, "payload": (head + end) // 2, "between": start}
    middle = at[place]
    bad = b"\xff\xfe\n" if place == "between" else b"\xff"
    tables, damage = damaged(tmp_path, log[:middle] + bad + log[middle:])
    assert damage.total >= 1
    assert next(iter(counts(damage).values()))[1] == line_at(log, start)
    assert len(frames(whole, tables)) <= 1


@pytest.mark.parametrize("block", [b"\0" * 4096, b"\0" * 4096 + b"\n"])
def test_nul_bytes_of_a_crashed_disk(tmp_path, clean, name, block):
    log, (whole, _) = LOGS[name], clean[name]
    begins = starts(log)
    place = begins[len(begins) // 2]
    tables, damage = damaged(tmp_path, log[:place] + block + log[place:])
    assert not lost(whole, tables)
    assert counts(damage) == {"foreign_line": (1, line_at(log, place))}


def test_nul_bytes_at_the_end(tmp_path, clean, name):
    tables, damage = damaged(tmp_path, LOGS[name] + b"\0" * (1 << 16))
    assert not lost(clean[name][0], tables)
    assert damage.total == 1


def test_a_log_converted_to_crlf(tmp_path, clean, name):
    tables, damage = damaged(tmp_path, LOGS[name].replace(b"\n", b"\r\n"))
    assert damage.total == 0
    assert not lost(clean[name][0], tables)


def test_a_wrong_digest_is_counted_and_the_payload_still_read(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    start, _, _ = a_payload(log)
    at = log.index(b'"has_payload": "', start) + 16
    tables, damage = damaged(tmp_path, log[:at] + b"0" * 32 + log[at + 32 :])
    assert counts(damage) == {"bad_digest": (1, line_at(log, start))}
    assert len(frames(whole, tables)) <= 1


def test_unknown_kinds_are_counted(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    begins = starts(log)
    place = begins[len(begins) // 2]
    stamp = log[place : log.index(b"] {", place) + 2]
    new = stamp + b'{"a_kind_of_tomorrow": {"x": 1}}\n'
    new += stamp + b'{"artifact": {"name": "artifact_of_tomorrow", "encoding": "json"}}\n'
    tables, damage = damaged(tmp_path, log[:place] + new + log[place:])
    unknown = tables["log_records"].filter(~tables["log_records"]["known"])
    assert {"a_kind_of_tomorrow", "artifact"} <= set(unknown["key"])
    assert "artifact_of_tomorrow" in set(unknown["name"])
    assert not lost(whole, tables)
    assert damage.total == 0


def test_a_stamp_of_another_year_and_zone_is_set_right_by_the_records_clocks(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    moved = re.sub(rb"^V1121 1\d:", b"V0229 23:", log, flags=re.MULTILINE)
    tables, damage = damaged(tmp_path, moved)
    assert damage.total == 0
    assert rows({"x": tables["compile_phases"]}) == rows({"x": whole["compile_phases"]})
    assert tables["compiles"]["compile_key"].equals(whole["compiles"]["compile_key"])


def test_a_stamp_that_is_no_date(tmp_path, clean, name):
    moved = re.sub(rb"^V1121 \d\d:", b"V0231 25:", LOGS[name], flags=re.MULTILINE)
    tables, _ = damaged(tmp_path, moved)
    whole, _ = clean[name]
    assert tables["compiles"]["compile_key"].equals(whole["compiles"]["compile_key"])


def test_ids_that_repeat_after_a_reset_are_kept_apart(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    twice, damage = damaged(tmp_path, log + log)
    assert damage.total == 0
    assert twice["compiles"].height == 2 * whole["compiles"].height
    assert twice["compiles"]["compile_key"].n_unique() == 2 * whole["compiles"].height


def other_process(log, pid=b"4242"):
    return re.sub(rb"^(V\d{4} \S+) \d+ ", rb"\1 " + pid + b" ", log, flags=re.MULTILINE)


def test_whole_records_of_two_processes_in_one_file(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    other = other_process(log)
    mine, theirs = ([x[a:b] for a, b in pairs(x)] for x in (log, other))
    woven = b"".join(a + b for a, b in zip(mine, theirs, strict=True))
    tables, damage = damaged(tmp_path, woven)
    assert damage.total == 0
    for pid in tables["compiles"]["pid"].unique():
        one = tables["compiles"].filter(tables["compiles"]["pid"] == pid)
        assert one.height == whole["compiles"].height


def pairs(log):
    begins = starts(log)
    return list(zip(begins, [*begins[1:], len(log)], strict=True))


def test_a_writer_that_breaks_into_anothers_payload(tmp_path, clean, name):
    """Two processes append to one file: one's record lies inside a payload of the other's."""
    log, (whole, _) = LOGS[name], clean[name]
    _, head, _ = a_payload(log)
    second = log.index(b"\n", head) + 1
    other = other_process(log)
    start, _, end = a_payload(other)
    tables, _ = damaged(tmp_path, log[:second] + other[start:end] + log[second:])
    assert len(frames(whole, tables)) <= 1


def test_a_line_torn_by_another_writer(tmp_path, clean, name):
    log, (whole, _) = LOGS[name], clean[name]
    begins = starts(log)
    start = begins[len(begins) // 2]
    middle = start + 100
    tables, damage = damaged(tmp_path, log[:middle] + b"Epoch 3: loss 0.1\n" + log[middle:])
    assert {line for _, line in counts(damage).values()} == {
        line_at(log, start),
        line_at(log, start) + 1,
    }
    assert len(frames(whole, tables)) <= 1


def test_a_line_glued_to_the_end_of_another(tmp_path, clean, name):
    """A foreign writer's last line had no end: torch's record begins in its middle."""
    log, (whole, _) = LOGS[name], clean[name]
    begins = starts(log)
    start = begins[len(begins) // 2]
    tables, _ = damaged(tmp_path, log[:start] + b"Epoch 3: 10%|##   | 7/70" + log[start:])
    assert not lost(whole, tables)


def test_a_packed_log_that_is_cut(tmp_path, clean, name):
    packed = gzip.compress(LOGS[name])
    tables, damage = damaged(tmp_path, packed[: len(packed) * 2 // 3])
    assert "truncated" in counts(damage)
    assert tables["compile_phases"].height > clean[name][0]["compile_phases"].height / 4


def test_garbage_all_over(tmp_path, clean, name):
    """A foreign line before every tenth line, of all kinds: only foreign lines are counted."""
    rng = random.Random(7)
    foreign = [b"hello\n", b"\xff\xfe\xfd\n", b"\0\0\n", b"[rank0]: x\n", b'{"a": 1}\n']
    lines = LOGS[name].splitlines(keepends=True)
    made = []
    for number, line in enumerate(lines):
        made.append(line)
        if number % 10 == 9:
            made.append(rng.choice(foreign))
    tables, damage = damaged(tmp_path, b"".join(made))
    assert set(counts(damage)) == {"foreign_line"}
    assert damage.total == len(lines) // 10
    assert not lost(clean[name][0], tables)

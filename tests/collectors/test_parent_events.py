"""Events are read as they are written, and nothing in them can hurt."""

import json

from traceview.collectors.events import EventTail, Story


def test_a_line_counts_once_it_is_whole(tmp_path):
    path = tmp_path / "events-1.jsonl"
    tail = EventTail(tmp_path)
    assert not tail.poll()
    path.write_text('{"event": "phase", "phase": "warmup"}\n{"event": "pha')
    tail.poll()
    assert tail.story.words == "warm-up"
    with path.open("a") as file:
        file.write('se", "phase": "block", "detail": "3/8"}\n')
    tail.poll()
    assert tail.story.words == "paired block 3/8"
    tail.story.hear({"event": "phase", "phase": "ceilings", "detail": None, "stance": None})
    assert tail.story.words == "measuring device limits"


def test_all_processes_are_heard(tmp_path):
    for pid, step in ((1, 5), (2, 9)):
        line = json.dumps({"event": "done", "step": step, "stopping": pid == 1})
        (tmp_path / f"events-{pid}.jsonl").write_text(line + "\n")
    story = EventTail(tmp_path).finish()
    assert (story.last_step, story.stopping) == (9, True)


def test_hostile_lines_are_passed_over(tmp_path):
    lines = [b"\xff\xfe", b"[]", b"3", b"{", b'{"event": 5, "step": "x"}', b"", b"[" * 100_000]
    lines += [b'{"event": "steps", "rows": [[]]}', b'{"event": "steps", "rows": 7}']
    lines += [b'{"event": "phase", "phase": ["x"]}', b'{"event": "block", "stance": {}}']
    (tmp_path / "events-1.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    assert EventTail(tmp_path).finish() == Story()


def test_a_line_without_an_end_is_stepped_over(tmp_path):
    good = b'\n{"event": "first_call"}\n'
    (tmp_path / "events-1.jsonl").write_bytes(b"x" * (3 << 20) + good)
    assert EventTail(tmp_path).finish().called


def test_the_crash_stance_is_the_one_of_the_error(tmp_path):
    story = Story()
    story.hear({"event": "phase", "phase": "block", "stance": "eager"})
    story.hear({"event": "error", "stance": "compiled"})
    assert (story.stance, story.crashed, story.crash_stance) == ("eager", True, "compiled")

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


def heard(*events):
    story = Story()
    for event in events:
        story.hear(event)
    return story


def phase(name, second, detail=None, **keys):
    return {"event": "phase", "phase": name, "detail": detail, "t": second * 1e6, **keys}


def block(pair, stance, ms, steps=10, compiles=0):
    keys = {"pair_index": pair, "stance": stance, "duration_ms": ms, "compiles_inside": compiles}
    return {"event": "block", "steps": steps, **keys}


def test_the_line_says_how_long_the_phase_takes():
    story = heard(phase("cold", 100))
    assert story.progress(101e6, 90e6) == "cold compile"
    assert story.progress(130e6, 90e6) == "cold compile, 30 s"
    assert Story().progress(91e6, 90e6) is None
    assert Story().progress(102e6, 90e6) == "waiting for the first compiled call, 12 s"


def test_time_left_is_that_of_the_pairs_without_the_profiling_between_them():
    story = heard(phase("block", 0, "1/12"), phase("block", 2, "2/12"), phase("block", 4, "3/12"))
    assert story.progress(4e6, 0.0) == "paired block 3/12, about 20 s left"
    story.hear(phase("profile", 5, "1/2", stance="eager"))
    assert story.progress(60e6, 0.0) == "profiling 1/2, 55 s"
    story.hear(phase("block", 60, "4/12"))
    assert story.progress(61e6, 0.0) == "paired block 4/12, about 17 s left"
    assert "about 1 s left" in (story.progress(600e6, 0.0) or "")


def test_the_interval_so_far_needs_six_pairs_and_weighs_them_by_their_length():
    ratios = (1.2, 1.3, 1.25, 1.21, 1.28)
    pairs = [(block(i, "eager", 10 * r), block(i, "compiled", 10)) for i, r in enumerate(ratios)]
    story = heard(*(event for pair in pairs for event in pair))
    assert story.so_far == "1.25× so far"
    for event in (block(5, "eager", 12.4), block(5, "compiled", 10)):
        story.hear(event)
    assert story.so_far == "1.20–1.30× so far"
    for event in (
        *(block(6, "eager", 90), block(6, "compiled", 10, compiles=1)),
        *(block(7, "eager", 90, steps=1), block(7, "compiled", 1, steps=1)),
        *(block(None, "eager", 1), block(8, "eager", 1)),
        *({"event": "block", "stance": "eager", "pair_index": 9, "steps": s} for s in (0, "x")),
        {**block(9, "compiled", float("nan")), "t": "x"},
    ):
        story.hear(event)
    assert story.so_far == "1.20–1.30× so far"


def test_blocks_of_one_rank_are_compared_with_its_own(tmp_path):
    for rank, ms in ((1, 10), (2, 100)):
        both = (block(0, "eager", 2 * ms), block(0, "compiled", ms))
        lines = [json.dumps(event) + "\n" for event in both]
        (tmp_path / f"events-{rank}.jsonl").write_text("".join(lines[rank - 1 :]))
    assert EventTail(tmp_path).finish().so_far == "2.00× so far"


def test_an_interval_by_ranks_holds_what_it_promises():
    """Twelve pairs: the third to the tenth, 96.1 %; the next narrower one has 85.4 %."""
    ratios = [1 + i / 100 for i in range(12)]
    story = heard(
        *(block(i, "eager", 10 * ratio) for i, ratio in enumerate(ratios)),
        *(block(i, "compiled", 10) for i in range(12)),
    )
    assert story.so_far == "1.02–1.09× so far"


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

"""Events are read as they are written, and nothing in them can hurt."""

import json

from traceview.collectors.compiling import CompileTail
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


def test_time_left_of_a_trial_is_that_of_its_own_pairs():
    one, two = ("1/2 dynamic=None", "2/2 patch a, pair 3/4.py:7")
    story = heard(phase("trial", 0, one), phase("trial", 9, f"{one}, pair 1/8"))
    assert story.progress(10e6, 0.0) == "trying 1/2 dynamic=None, pair 1/8"
    story.hear(phase("trial", 11, f"{one}, pair 2/8"))
    assert story.progress(11e6, 0.0) == "trying 1/2 dynamic=None, pair 2/8, about 14 s left"
    story.hear(phase("trial", 30, f"{two}, pair 1/8"))
    assert "left" not in (story.progress(31e6, 0.0) or "")
    story.hear(phase("trial", 34, f"{two}, pair 2/8"))
    assert (story.progress(34e6, 0.0) or "").endswith("pair 2/8, about 28 s left")


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


def header(kind, body, compile_id="0/0", second=0):
    frame, number = compile_id.split("/")
    ids = {"frame_id": int(frame), "frame_compile_id": int(number), "attempt": 0}
    stamp = f"V1126 16:12:{second:02}.000000 77 torch/_logging/structured.py:28] "
    return stamp + json.dumps({kind: body, **({} if kind == "str" else ids)}) + "\n"


def timed(name, mark, second, compile_id="0/0"):
    """A phase as torch writes it; keys that come later than torch's own have other values."""
    payload = {"name": name, "ts": second * 1e6, "args": {"name": "x", "ts": 1.0}, "ph": mark}
    lines = json.dumps(payload, indent=0).splitlines()
    return header("chromium_event", {}, compile_id) + "".join(f"\t{line}\n" for line in lines)


def started(compile_id="0/0"):
    stack = [{"line": 9, "name": "main", "filename": 0}, {"line": 2, "name": "step", "filename": 1}]
    files = header("str", ["/u/main.py", 0]) + header("str", ["/u/train.py", 1])
    return files + header("dynamo_start", {"stack": stack}, compile_id)


CODE = "\tcpp_fused_{0} = async_compile.cpp_pybinding(['float*'], r'''\n\t''')\n"
REASON = "\t0/0: L['n'] == 3   # y = x + n  # train.py:4 in step\n\tUser stack trace:\n"
BUILDS = "".join(timed(name, "B", 103) for name in ("code_gen", "async_compile.wait"))


class Logged:
    """A pass's folder whose structured log grows."""

    def __init__(self, folder):
        self._log = folder / "structured" / "dedicated_log_torch_trace_x.log"
        self._log.parent.mkdir()
        self._caches = folder / "inductor"
        self.tail = EventTail(folder, CompileTail(self._log.parent, [self._caches]))

    def write(self, *texts):
        with self._log.open("a") as file:
            file.writelines(texts)
        self.tail.poll()
        return self.tail.take_news()

    def line(self, second):
        return self.tail.story.progress(second * 1e6, 0.0)

    def build(self, name):
        path = self._caches / name[:2] / f"{name}.main.so"
        path.parent.mkdir(parents=True)
        path.touch()


def test_a_compile_is_shown_with_its_function_phase_and_kernels(tmp_path):
    logged = Logged(tmp_path)
    news = logged.write(timed("entire_frame_compile", "B", 100), started())
    began = {"compile_id": "0/0", "function": "step", "file": "/u/train.py", "line": 2, "pid": 77}
    assert (news[0]["event"], news[0]["t"]) == ("compile_began", 100e6)
    assert news[0].items() >= began.items()
    assert logged.line(101) == "compiling step"
    assert logged.write(timed("backend_compile", "B", 102))[0]["phase"] == "AOTAutograd"
    assert logged.line(124) == "compiling step, 24 s, AOTAutograd"
    code = header("inductor_output_code", {}) + CODE.format(0) + CODE.format(1)
    logged.build("aaaa")
    (went_on,) = logged.write(code, BUILDS)
    assert went_on["phase"] == "Triton/C++ compile"
    assert (went_on["kernels"], went_on["kernels_built"]) == (2, 1)
    assert logged.line(124) == "compiling step, 24 s, 1 of 2 kernels built"
    ended = logged.write(
        timed("async_compile.wait", "E", 130),
        timed("entire_frame_compile", "E", 131),
        header("compilation_metrics", {"fail_type": None}),
    )
    keys = {"event": "compile_ended", "seconds": 31.0, "kernels": 2, "failed": None}
    assert ended[-1].items() >= keys.items()
    assert logged.line(131) == "waiting for the first compiled call, 131 s"


def test_a_recompile_is_shown_with_its_reason_also_when_it_was_short(tmp_path):
    logged = Logged(tmp_path)
    reasons = header("artifact", {"name": "recompile_reasons"}, "0/1") + REASON
    began = timed("entire_frame_compile", "B", 200, "0/1")
    ended = header("compilation_metrics", {}, "0/1")
    news = logged.write(began, reasons, started("0/1"), ended)
    assert [(each["event"], each["reason"]) for each in news] == [
        ("compile_began", "n == 3"),
        ("compile_ended", "n == 3"),
    ]
    logged.tail.story.hear(phase("block", 199, "2/8"))
    assert logged.line(201) == "paired block 2/8, recompiled step (n == 3)"
    assert logged.line(204) == "paired block 2/8"


def test_the_backward_is_a_compile_of_its_own(tmp_path):
    logged = Logged(tmp_path)
    logged.write(started(), header("compilation_metrics", {}))
    (began, _) = logged.write(timed("entire_backward_compile", "B", 300))
    assert (began["function"], began["direction"]) == ("step", "backward")
    assert logged.line(310) == "compiling backward of step, 10 s, AOTAutograd"
    (ended,) = logged.write(timed("entire_backward_compile", "E", 311))
    assert (ended["event"], ended["seconds"]) == ("compile_ended", 11.0)


def test_hostile_records_of_compiles_are_passed_over(tmp_path):
    logged = Logged(tmp_path)
    bad = [header("dynamo_start", body) for body in ([], 3, {"stack": [3]}, {"stack": [{}]})]
    bad += [header("str", [[], []]), header("artifact", None), header("compilation_metrics", [])]
    bad += ["V1126 x 7 y] {\n", 'V1126 x 7 y] {"str"\n', "\t\n", "x" * (3 << 20) + "\n"]
    assert logged.write(*bad, "\n") == []
    while logged.tail.poll():
        pass
    for _ in range(4):
        logged.write(timed("dynamo", "E", 1))
    (began,) = logged.write(started())
    assert began["function"] == "step"


def test_blocks_are_news_with_the_speedup_and_the_time_left():
    story = heard(phase("block", 0, "1/12"), phase("block", 2, "2/12"))
    for stance, ms in (("eager", 13), ("compiled", 10)):
        story.hear({**block(0, stance, ms), "t": 3e6})
    first, _, blocks = story.news
    assert first.items() >= {"event": "phase", "phase": "block", "detail": "1/12"}.items()
    keys = {"event": "blocks", "pairs": 1, "pair": 2, "of": 12, "speedup": 1.3, "low": None}
    assert blocks.items() >= keys.items()
    assert blocks["seconds_left"] == 21.0

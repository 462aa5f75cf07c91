import pytest
import sample
from msgspec import structs

from traceview.diagnosis.explanation import CallPart, FusionNote
from traceview.reports import terminal
from traceview.rules.finding import Cost
from traceview.words.text import display_width


@pytest.mark.parametrize("name", sample.ALL)
@pytest.mark.parametrize("width", [20, 40, 80, 300])
def test_lines_fit_the_terminal(name, width):
    text = terminal.render(sample.ALL[name](), width, color=False)
    assert max(map(display_width, text.splitlines())) <= min(width, 100)
    assert "\x1b" not in text
    assert not text.endswith("\n")
    text.encode()


def test_the_whole_fits_a_screen_at_80_columns():
    for make in (sample.helped, sample.hurt, sample.failed, sample.empty):
        assert len(terminal.render(make(), 80, color=False).splitlines()) <= 30


def test_verdict_first_then_times_then_three_findings_with_what_to_do():
    text = terminal.render(sample.helped(), 100, color=False)
    order = [
        "▲ torch.compile helped", "0.790 ms instead of 4.55 ms", "device clock",
        "cold compile 4.53 s", "TV101", "model.py:43", "→ Keep", "TV203", "TV510",
        "1 more finding", "2 rules were not checked",
    ]  # fmt: skip
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert "TV901" not in text


def test_colour_adds_codes_and_nothing_else():
    plain = terminal.render(sample.hurt(), 80, color=False)
    coloured = terminal.render(sample.hurt(), 80, color=True)
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[34m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


def test_failed_target_says_how_it_ended():
    lines = terminal.render(sample.failed(), 80, color=False).splitlines()
    assert lines[0].startswith("✕ The target failed")
    assert "exit code 1" in "\n".join(lines[:3])


def test_times_are_said_once():
    text = terminal.render(sample.helped(), 100, color=False)
    assert text.count("4.55 ms") == 1
    unsaid = structs.replace(sample.failed().verdict, eager_ms=4.55, compiled_ms=None, clock="host")
    text = terminal.render(structs.replace(sample.failed(), verdict=unsaid), 100, color=False)
    assert "eager 4.55 ms" in text
    assert "not recorded" not in text


def test_nothing_is_said_of_what_is_not_known():
    finding = sample.finding(cost=Cost(), location=None)
    text = terminal.render(structs.replace(sample.empty(), findings=(finding,)), 80, False)
    for words in ("not known", "not recorded", "no line", "break-even", "peak memory"):
        assert words not in text


def test_the_limit_follows_what_the_times_rest_on():
    text = terminal.render(sample.helped(), 100, color=False)
    order = ["fusion 3.16 ms", "device clock", "At the limit", "TV101"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_symptoms_stand_under_their_cause():
    text = terminal.render(sample.helped(), 100, color=False)
    cause = text[text.index("TV203") : text.index("TV510")]
    assert "/schedule.py:18 in lr → sched/rates.py:7 in warm · 0.310" in cause
    assert "\n  └ TV202 `lr` hit the recompile limit (8)\n" in cause


def explained(base=None, **changes):
    """The terminal's text for the sample whose explanation has ``changes``."""
    base = base or sample.helped()
    changed = structs.replace(base.explanation, **changes)
    return terminal.render(structs.replace(base, explanation=changed), 100, color=False)


def limits(**changes):
    """The sample's step limits; ``changes`` are the compiled step's."""
    eager, compiled = sample.helped().explanation.step_limits
    return (eager, structs.replace(compiled, **changes))


def one_line(text):
    return " ".join(text.split())


def test_the_dearest_refused_fusion_is_said_with_its_bytes_and_setting():
    apart = FusionNote("epilogue_not_tried", "The addition after the product runs apart.", None,
                       "0/0", (), (), (), 50331648, "max_autotune_gemm", 3)  # fmt: skip
    notes = (*sample.helped().explanation.fusion, apart)
    dear = explained(fusion=notes, step_limits=limits(fusible_ms=0.2))
    assert (
        "epilogue fusion not tried: The addition after the product runs apart. (3 times, "
        "48.0 MiB that fusing would save per call, setting max_autotune_gemm)"
    ) in one_line(dear)
    assert "would save per call" in explained(fusion=notes, step_limits=())


def test_no_refused_fusion_is_said_where_it_would_save_next_to_nothing_or_nobody_knows_what():
    assert "would save per call" not in explained(step_limits=limits(fusible_ms=0.001))
    notes = [structs.replace(n, bytes_saved=None) for n in sample.helped().explanation.fusion]
    text = explained(fusion=tuple(notes), step_limits=limits(fusible_ms=0.2))
    assert "not tried" not in text
    assert "not fused" not in text


def parts(**changes):
    lookup, *others = sample.helped().explanation.call_path
    return (*others, structs.replace(lookup, **changes))


def test_the_dearest_part_of_the_call_path_is_said_with_its_guards():
    text = explained(call_path=parts(us_per_call=110.0, ms=0.11), step_limits=())
    assert "call path per call, host clock, as profiled: cache look-up 110 µs (11 guards)\n" in text
    text = explained(call_path=parts(us_per_call=110.0, us_less_profiler=90.0), step_limits=())
    assert "host clock, less the profiler: cache look-up 90.0 µs (11 guards)\n" in text


def test_another_part_may_be_dearer_than_the_lookup():
    wrapper = CallPart("generated_wrapper", 0, "0/0", 2.0, 60.0, 0.12, None, None)
    text = explained(call_path=(*parts(), wrapper), step_limits=())
    assert "generated wrapper code 60.0 µs, cache look-up 11.0 µs (11 guards)" in one_line(text)


def test_a_call_path_that_costs_next_to_nothing_is_not_said():
    assert "call path" not in explained(step_limits=())
    dear = parts(us_per_call=110.0, ms=0.11)
    assert "call path" not in explained(call_path=dear, step_limits=limits(launch_idle_ms=0.0))
    assert "call path" in explained(call_path=dear, step_limits=limits(launch_idle_ms=0.2))


def test_a_call_path_longer_than_the_step_is_not_of_that_step():
    assert "call path" not in explained(call_path=parts(us_per_call=3700.0, ms=3.7), step_limits=())


def test_the_phases_that_take_most_of_the_compile_are_said():
    base = sample.helped()
    phases = {"dynamo_s": 1.4, "aot_s": 0.01, "inductor_s": 2.5}
    compiled = structs.replace(base.compile_time, phases=phases)
    text = explained(structs.replace(base, compile_time=compiled))
    assert "  compile phases: Dynamo tracing 1.40 s, Inductor 2.50 s\n" in text
    nothing = structs.replace(base.compile_time, phases={})
    assert "compile phases" not in explained(structs.replace(base, compile_time=nothing))

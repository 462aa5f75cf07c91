"""Layout arithmetic of the pictures."""

import re

import pytest
import sample
import sample_explained
import sample_odd
from msgspec import structs
from page import Page

from traceview.diagnosis.explanation import Ceiling, Effect, PhaseSpan
from traceview.diagnosis.model import AccountRow, CompileRow
from traceview.reports.pictures import compiles, limits, pairs, time
from traceview.reports.pictures.bars import LogScale, nice_ticks
from traceview.reports.pictures.time import category_changes
from traceview.reports.view import digits as digits_of

DRAWN = (
    time.times, time.accounts, time.waterfall, pairs.pairs, compiles.compiles,
    compiles.first_calls, compiles.phases, pairs.groups, limits.roofline, limits.bandwidth,
    time.steps,
)  # fmt: skip


def explained(**changes):
    """``helped`` with another explanation."""
    base = sample.helped()
    return structs.replace(base, explanation=structs.replace(base.explanation, **changes))


def widths(picture, kind):
    """Of the rectangles of a class, in percent."""
    return [
        float(w) for w in re.findall(rf'width="([\d.]+)%" height="[\d.]+" class="{kind}"', picture)
    ]


def heights(picture, kind):
    """Of the rectangles of a class, in pixels."""
    return [float(h) for h in re.findall(rf'height="([\d.]+)" class="{kind}"', picture)]


def texts(picture, kind):
    """The words of a class, in order."""
    return re.findall(rf'class="{kind}"[^>]*>([^<]*)<', picture)


def test_bars_share_one_scale_and_the_longest_fills_it():
    eager, compiled = widths(time.times(sample.helped()), r"f-stance-\w+")
    assert eager == 100
    assert compiled == pytest.approx(100 * 0.79 / 4.55, abs=0.01)


def test_segments_have_the_length_of_their_milliseconds():
    found = widths(time.accounts(explained(profiler=())), r"f-[\w-]+(?: thin)?")
    eager, compiled = sum(found[:5]), sum(found[5:])
    assert len(found) == 10
    assert eager == pytest.approx(100, abs=0.01)
    assert compiled == pytest.approx(100 * 0.79 / 4.55, abs=0.01)
    assert found[0] == pytest.approx(100 * 3.42 / 4.55, abs=0.01)


def test_the_profiler_stands_beside_the_step_and_not_in_it():
    picture = time.accounts(sample.helped())
    inside = sum(widths(picture, r"f-[\w-]+(?: thin)?")[:5])
    assert inside == pytest.approx(100 * 4.55 / 5.1, abs=0.01)
    beside = widths(picture, "outline")
    assert beside[0] == pytest.approx(100 * (5.1 - 4.55) / 5.1 - 0.4, abs=0.01)
    assert texts(picture, "rowvalue") == ["4.55 ms", "0.790 ms"]


def test_a_dear_profiler_does_not_squeeze_the_step():
    cost = structs.replace(sample_explained.PROFILER[0], profiled_step_ms=400.0)
    picture = time.accounts(explained(profiler=(cost,)))
    assert sum(widths(picture, r"f-[\w-]+(?: thin)?")[:5]) == pytest.approx(100 / 1.6, abs=0.01)
    assert sum(widths(picture, "outline")) < 40


def test_idle_and_unexplained_stand_last_and_are_hatched():
    picture = time.accounts(sample.helped())
    kinds = re.findall(r'class="f-(\w+)"', picture)
    assert kinds[:5] == ["elem", "gemm", "redu", "idle", "unex"]
    assert picture.count("url(#accounts-unex)") == 2


def test_more_than_the_step_was_found():
    rows = (AccountRow("gemm", 5.0, "busy"), AccountRow("unexplained", -0.4, "unexplained"))
    picture = time.accounts(structs.replace(explained(profiler=()), accounting={"eager": rows}))
    assert texts(picture, "rowvalue") == ["4.60 ms"]
    assert widths(picture, r"f-[\w-]+(?: thin)?") == [100.0]


def test_left_out_pair_far_away_does_not_squeeze_the_others():
    rows = [{"speedup": 1.2 + i / 100, "used": True} for i in range(5)]
    rows += [{"speedup": 40.0, "used": False, "left_out": "compile inside"}]
    diagnosis = structs.replace(sample.helped(), pairs=tuple(rows))
    assert pairs.off_axis(diagnosis) == 1
    assert pairs.pairs(diagnosis).count("<circle") == 5
    assert pairs.off_axis(sample.helped()) == 0


def test_a_compile_is_placed_where_it_began():
    picture = compiles.compiles(sample.helped())
    starts = [float(x) for x in re.findall(r'<g><title>[^<]*</title><rect x="([\d.]+)%"', picture)]
    assert starts[0] == 0
    assert starts[4] == pytest.approx(100 * 5.2 / 5.8, abs=0.01)


@pytest.mark.parametrize("draw", DRAWN)
def test_a_picture_of_nothing_is_empty(draw):
    assert draw(sample.empty()) == ""


@pytest.mark.parametrize("draw", DRAWN)
def test_every_picture_is_drawn_with_words_beside_it(draw):
    page = Page(draw(sample.helped()))
    assert page.problems == []
    assert page.text
    outer = page.all("svg")[0]
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert outer["role"] == "img"
    assert set(outer["aria-labelledby"].split()) <= ids
    assert all(inner["aria-hidden"] == "true" for inner in page.all("svg")[1:])


@pytest.mark.parametrize("offset", range(len(sample_odd.ODD)))
@pytest.mark.parametrize("draw", DRAWN)
def test_odd_numbers_are_left_out_or_drawn_within_the_picture(draw, offset):
    picture = draw(sample.absurd(offset))
    assert Page(picture).problems == []
    for name, value in re.findall(r'\b(x|y|width|height|cx|cy|r|x1|x2|y1|y2)="([^"]+)"', picture):
        number = float(value.rstrip("%"))
        assert abs(number) < 1e5, (name, value)
        assert not (value.endswith("%") and name != "width" and abs(number) > 130), (name, value)


@pytest.mark.parametrize(("step_ms", "digits"), [(4.5, 3), (0.2, 4), (0.01, 5), (None, 3)])
def test_short_steps_get_more_decimals(step_ms, digits):
    verdict = structs.replace(sample.helped().verdict, eager_ms=step_ms, compiled_ms=None)
    diagnosis = structs.replace(sample.helped(), verdict=verdict)
    assert digits_of(diagnosis) == digits


def test_effects_lead_from_the_eager_median_to_the_compiled_one():
    picture = time.waterfall(sample.helped())
    values = texts(picture, "rowvalue halo")
    assert values == ["4.55 ms", "−3.160 ms", "−0.620 ms", "+0.020 ms", "0.790 ms"]
    lengths = widths(picture, r"f-[\w-]+(?: thin)?")
    assert lengths[1] == pytest.approx(100 * 3.16 / 4.55, abs=0.01)
    assert picture.count('class="joint"') == 4


def test_effects_that_do_not_reach_the_compiled_median_say_so():
    picture = time.waterfall(explained(waterfall=sample_explained.WATERFALL[:1]))
    assert texts(picture, "rowlabel halo")[-2:] == ["everything else", "compiled"]
    assert texts(picture, "rowvalue halo")[-2] == "−0.600 ms"


def test_small_effects_of_a_long_step_are_seen():
    verdict = structs.replace(sample.helped().verdict, eager_ms=100.0, compiled_ms=99.0)
    effects = (Effect("fusion", -2.0, None, None, "device", "measured"),
               Effect("other_idle", 1.0, None, None, "device", "derived"))  # fmt: skip
    diagnosis = structs.replace(explained(waterfall=effects), verdict=verdict)
    assert time.axis_start(diagnosis) == 97.0
    lengths = widths(time.waterfall(diagnosis), r"f-(?:less|more)")
    assert lengths == pytest.approx([100 * 2 / 3, 100 / 3], abs=0.01)
    assert time.axis_start(sample.helped()) == 0


def test_without_effects_the_categories_lead_to_the_compiled_step():
    plain = explained(waterfall=())
    found = category_changes(plain)
    sizes = [abs(after - before) for _, before, after in found]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(after - before for _, before, after in found) == pytest.approx(0.79 - 4.55)
    values = texts(time.waterfall(plain), "rowvalue halo")
    assert values[0] == "4.55 ms"
    assert values[1:3] == ["−3.420 ms", "−0.640 ms"]
    assert values[-1] == "0.790 ms"


def test_compiles_of_one_function_share_a_row_and_many_functions_are_folded():
    rows = tuple(
        CompileRow(f"{i % 40}/{i // 40}", "f", "a.py", 1, "ok", float(i), 0.5, {}, 1, 1, None)
        for i in range(500)
    )
    picture = compiles.compiles(structs.replace(sample.helped(), compiles=rows))
    labels = texts(picture, "rowlabel halo(?: tight)?")
    assert len(labels) == 17
    assert labels[0] == "0 f · 13 compiles"
    assert labels[-1].startswith("24 more functions")


def test_nested_phases_lie_below_and_workers_apart():
    picture = compiles.phases(sample.helped())
    assert texts(picture, "rowlabel halo") == ["not tied to a compile", "0 forward"]
    assert texts(picture, "rowvalue halo") == ["500 ms", "4.50 s"]
    assert len(heights(picture, "track")) == 1 + 4
    assert len(heights(picture, "track workers")) == 2
    tops = re.findall(
        r"<title>([^<]+?) [\d.,]+ m?s.*?</title><rect x=\"[\d.]+%\" y=\"([\d.]+)", picture
    )
    levels = dict(tops)
    order = ["dynamo", "aot", "inductor", "codegen", "async_compile"]
    placed = [float(levels[name]) for name in order]
    assert placed == sorted(placed)
    assert len(set(placed)) == 5


def test_a_span_of_no_compile_and_of_great_depth_is_kept_or_left_out():
    deep = (
        PhaseSpan(None, "x", "", 0.0, 1.0, None, 0),
        PhaseSpan(None, "x", "", 0.0, 1.0, None, 99),
    )
    assert compiles.phases(explained(phases=deep)).count("<g>") == 1


def test_blocks_of_a_group_are_as_high_as_their_time():
    picture = pairs.groups(sample.helped())
    elementwise, copies, generated = (
        heights(picture, f"f-{family}")[0] for family in ("elem", "copy", "gen1")
    )
    assert elementwise + copies == pytest.approx(110, abs=0.2)
    assert copies / elementwise == pytest.approx(0.42 / 3.0, abs=0.01)
    assert generated == pytest.approx(110 * 0.38 / 3.42, abs=0.1)
    assert picture.count('class="ribbon"') == 2
    assert len(heights(picture, "outline")) == 1


def test_a_group_says_how_many_kernels_became_how_many_and_where():
    picture = pairs.groups(sample.helped())
    assert texts(picture, "rowlabel")[0] == "34 kernels, 3.42 ms"
    assert texts(picture, "rowvalue")[0] == "1 kernel, 0.380 ms"
    assert texts(picture, "rowvalue")[2] == "nothing in compiled"
    assert "model.py:42, 44 · sigmoid + tanh + mul + add + relu" in picture


def test_groups_beyond_the_picture_are_counted():
    groups = sample_explained.MATCHING.groups * 10
    matching = structs.replace(sample_explained.MATCHING, groups=groups)
    diagnosis = explained(matching=matching)
    assert pairs.groups(diagnosis).count("<g>") == 12
    assert pairs.undrawn_groups(diagnosis) == 18


def test_a_kernel_at_the_ridge_lies_on_both_roofs():
    ridge = 51.2e12 / 4010e9
    kernel = structs.replace(
        sample_explained.LIMITS[2], bytes=10**9, flops=round(ridge * 10**9), tflop_s=51.2
    )
    ceilings = (sample_explained.CEILINGS[0], sample_explained.CEILINGS[2])
    picture = limits.roofline(explained(limits=(kernel,), ceilings=ceilings))
    x, y = map(float, re.search(r'<circle cx="([\d.]+)%" cy="([\d.]+)"', picture).groups())
    lines = re.findall(
        r'<line x1="([\d.]+)%" y1="([\d.]+)" x2="([\d.]+)%" y2="([\d.]+)" class="ceiling"', picture
    )
    slanted, flat = (list(map(float, line)) for line in lines)
    assert slanted[2:] == pytest.approx([x, y], abs=0.2)
    assert flat[:2] == pytest.approx([x, y], abs=0.2)
    assert flat[3] == pytest.approx(y, abs=0.2)


def test_eager_dots_are_hollow_and_dots_grow_with_time():
    picture = limits.roofline(sample.helped())
    assert picture.count("f-gemm hollow") == 1
    assert picture.count("f-gemm solid") == 1
    short = structs.replace(sample_explained.LIMITS[3], ms=0.01)
    both = explained(limits=(sample_explained.LIMITS[2], short))
    radii = [float(r) for r in re.findall(r' r="([\d.]+)"', limits.roofline(both))]
    assert radii[1] > 2 * radii[0]


def test_a_roofline_without_ceilings_has_dots_and_no_lines():
    picture = limits.roofline(explained(ceilings=()))
    assert picture.count("<circle") == 2
    assert 'class="ceiling' not in picture


def test_ceilings_in_other_units_are_no_lines():
    launch = Ceiling("launch", None, 2.1, "us", None, None, 9, "host")
    assert 'class="ceiling' not in limits.roofline(explained(ceilings=(launch,)))


def test_the_width_of_a_bandwidth_strip_is_the_busy_time():
    picture = limits.bandwidth(sample.helped())
    elementwise = widths(picture, "f-elem")
    assert elementwise == pytest.approx([100 * 3.42 / 3.85], abs=0.01)
    assert widths(picture, "f-unex") == pytest.approx([100 * 0.12 / 3.85], abs=0.01)
    assert widths(picture, "f-rest")[0] == pytest.approx(100 * 0.31 / 3.85, abs=0.01)
    tall = heights(picture, "f-gen1")[0] / heights(picture, "f-elem")[0]
    assert tall == pytest.approx(3532.0 / 333.6, abs=0.3)


def test_spans_of_both_stances_share_one_scale():
    picture = time.steps(sample.helped())
    floors = widths(picture, r"f-(?:host|idle)")
    assert floors[:2] == [100, 100]
    assert min(floors[2:5]) <= 100 * 1.2 / 5.1 + 0.01
    assert widths(picture, "f-gen1") == pytest.approx([100 * 0.38 / 5.1], abs=0.01)
    assert texts(picture, "rowvalue halo") == ["eager, step 3", "compiled, step 3"]


def test_spans_that_are_not_drawn_are_counted():
    assert time.undrawn(sample.helped()) == 12
    diagnosis = sample.many()
    drawn = time.steps(diagnosis).count("<g>")
    assert drawn <= 1800
    assert time.undrawn(diagnosis) > 10_000


def test_axes_have_round_numbers():
    assert nice_ticks(5.1) == [0, 2, 4]
    assert nice_ticks(0.79) == pytest.approx([0, 0.2, 0.4, 0.6])
    scale = LogScale(0.1, 1000, 100.0)
    assert scale.at(10) == pytest.approx(50)
    assert (scale.at(0), scale.at(1e9)) == (0, 100)
    assert scale.round_values() == pytest.approx([0.1, 1, 10, 100, 1000])
    assert LogScale(30, 300, 1.0).round_values() == pytest.approx([50, 100, 200])
    assert len(LogScale(1e-9, 1e9, 1.0).round_values()) <= 7


def test_a_line_leads_from_an_unexplained_bar_to_the_compiled_one():
    effects = (Effect("fusion", -3.0, None, None, "device", "measured"),
               Effect("unexplained", -0.76, None, None, "device", "measured"),
               Effect("other_idle", 0.0001, None, None, "device", "derived"))  # fmt: skip
    picture = time.waterfall(explained(waterfall=effects))
    assert len(texts(picture, "rowlabel halo")) == 4
    joints = re.findall(r'<line x1="([\d.]+)%"[^>]*class="joint"', picture)
    places = [100.0, 100 * 1.55 / 4.55, 100 * 0.79 / 4.55]
    assert list(map(float, joints)) == pytest.approx(places, abs=0.01)


def test_connectors_end_above_the_next_figure():
    drawn = str(time.waterfall(sample.helped()))
    joints = [
        (float(top), float(bottom))
        for top, bottom in re.findall(
            r'y1="([\d.]+)" x2="[\d.]+%" y2="([\d.]+)" class="joint"', drawn
        )
    ]
    baselines = [
        float(y) for y in re.findall(r'<text x="[\d.]+%" y="([\d.]+)" class="rowvalue', drawn)
    ]
    assert joints
    for top, bottom in joints:
        below = min(y for y in baselines if y > top)
        assert bottom <= below - 13  # the height of its figures

"""Layout arithmetic of the pictures."""

import dataclasses
import re

import pytest
import sample

from traceview.diagnosis.model import CompileRow
from traceview.reports import pictures
from traceview.reports.view import Limits, View


def widths(picture, kind):
    return [
        float(w) for w in re.findall(rf'width="([\d.]+)%" height="\d+" class="{kind}"', picture)
    ]


def test_bars_share_one_scale_and_the_longest_fills_it():
    eager, compiled = widths(pictures.times(sample.helped()), r"f-stance-\w+")
    assert eager == 100
    assert compiled == pytest.approx(100 * 0.79 / 4.55, abs=0.01)


def test_waterfall_segments_have_the_length_of_their_milliseconds():
    found = widths(pictures.waterfall(sample.helped()), r"f-\w+")
    eager, compiled = sum(found[:4]), sum(found[4:])
    assert eager == pytest.approx(100, abs=0.01)
    assert compiled == pytest.approx(100 * 0.79 / 4.55, abs=0.01)
    assert found[0] == pytest.approx(100 * 3.42 / 4.55, abs=0.01)


def test_left_out_pair_far_away_does_not_squeeze_the_others():
    pairs = [{"speedup": 1.2 + i / 100, "used": True} for i in range(5)]
    pairs += [{"speedup": 40.0, "used": False, "left_out": "compile inside"}]
    diagnosis = dataclasses.replace(sample.helped(), pairs=tuple(pairs))
    assert pictures.off_axis(diagnosis) == 1
    assert pictures.pairs(diagnosis).count("<circle") == 5
    assert pictures.off_axis(sample.helped()) == 0


def test_timeline_places_a_compile_where_it_began():
    picture = pictures.timeline(sample.helped())
    starts = [float(x) for x in re.findall(r'<g><title>[^<]*</title><rect x="([\d.]+)%"', picture)]
    assert starts[0] == 0
    assert starts[4] == pytest.approx(100 * 5.2 / 5.8, abs=0.01)


def test_a_picture_of_nothing_is_empty():
    nothing = sample.empty()
    for draw in (pictures.times, pictures.waterfall, pictures.pairs, pictures.timeline):
        assert draw(nothing) == ""


@pytest.mark.parametrize(("step_ms", "digits"), [(4.5, 3), (0.2, 4), (0.01, 5), (None, 3)])
def test_short_steps_get_more_decimals(step_ms, digits):
    verdict = dataclasses.replace(sample.helped().verdict, eager_ms=step_ms, compiled_ms=None)
    diagnosis = dataclasses.replace(sample.helped(), verdict=verdict)
    assert View(diagnosis, Limits(1, 1, 1, 1, 1)).digits() == digits


def test_changes_lead_from_the_eager_step_to_the_compiled_one():
    found = pictures.account_changes(sample.helped())
    sizes = [abs(after - before) for _, before, after in found]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(after - before for _, before, after in found) == pytest.approx(0.79 - 4.55)
    picture = pictures.changes(sample.helped())
    values = re.findall(r'class="rowvalue" text-anchor="end">([^<]*)<', picture)
    assert values[0] == "4.55 ms"
    assert values[1:3] == ["−3.420 ms", "−0.700 ms"]
    assert values[-1] == "0.790 ms"
    assert pictures.changes(sample.empty()) == ""


def test_compiles_of_one_function_share_a_row_and_many_functions_are_folded():
    rows = tuple(
        CompileRow(f"{i % 40}/{i // 40}", "f", "a.py", 1, "ok", float(i), 0.5, {}, 1, 1, None)
        for i in range(500)
    )
    picture = pictures.timeline(dataclasses.replace(sample.helped(), compiles=rows))
    labels = re.findall(r'class="rowlabel" text-anchor="start">([^<]*)<', picture)
    assert len(labels) == 17
    assert labels[0] == "0 f · 13 compiles"
    assert labels[-1].startswith("24 more functions")

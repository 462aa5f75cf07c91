import json

import sample

from traceview.diagnosis import from_json
from traceview.reports import json as json_report


def test_it_is_the_diagnosis_with_sorted_keys():
    text = json_report.render(sample.helped())
    data = json.loads(text)
    assert list(data) == sorted(data)
    assert data["format"] == 1
    assert from_json(data).verdict == sample.helped().verdict


def test_hostile_text_survives_as_it_was():
    data = json.loads(json_report.render(sample.hostile(0)))
    assert data["target"] == sample.hostile(0).target

import json

import pytest
import sample
from msgspec.structs import replace

from traceview.contracts import text_of
from traceview.diagnosis import from_json, to_json


def test_it_is_the_diagnosis_with_sorted_keys():
    text = text_of(to_json(sample.helped()))
    data = json.loads(text)
    assert list(data) == sorted(data)
    assert data["format"] == 2
    assert from_json(data).verdict == sample.helped().verdict


def test_hostile_text_survives_as_it_was():
    data = json.loads(text_of(to_json(sample.hostile(0))))
    assert data["target"] == sample.hostile(0).target


@pytest.mark.parametrize("target", ["é.py", "\U0001f525 \u2028.py", "caf\udce9.py"])
def test_it_is_ascii_whatever_a_file_is_called(target):
    text = text_of(to_json(replace(sample.helped(), target=target)))
    assert text.isascii()
    assert json.loads(text)["target"] == target
    assert text == json.dumps(json.loads(text), sort_keys=True, indent=2)

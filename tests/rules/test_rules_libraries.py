"""What happens in an installed package is advised on at the user's own call."""

import pytest
from recordings import diagnosis_of

from traceview.diagnosis.tree import everyone
from traceview.rules import _breaks
from traceview.rules.kit import Location, Snippet
from traceview.torchtext.frames import package

OWN = Location("/home/me/train.py", 20, "forward")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/venv/lib/python3.11/site-packages/timm/models/resnet.py", "timm"),
        ("/usr/lib/python3/dist-packages/six.py", "six"),
        ("/venv/lib/python3.11/site-packages/traceview/demos/mlp.py", None),
        ("/home/me/train.py", None),
    ],
)
def test_packages(file, name):
    assert package(file) == name


@pytest.mark.parametrize(
    ("library", "kept"),
    [("timm/layers/drop.py", False), ("torch/nn/functional.py", True), (None, True)],
)
def test_advice_to_edit_is_for_the_users_own_line(library, kept):
    inside = Location(f"/venv/lib/python3.11/site-packages/{library}", 7) if library else None
    site = _breaks.Site(({},), OWN, inside)
    edit = Snippet("diff", "- a\n+ b")
    advice, snippet = _breaks.at_call(site, "Move this line.", edit)
    assert (advice == "Move this line.", snippet is edit) == (kept, kept)
    assert kept or "timm" in advice


@pytest.mark.parametrize("name", ["libraries-model", "bad-gb_item_library"])
def test_no_finding_edits_a_line_of_a_library(name):
    found = [f for f in everyone(diagnosis_of(name).findings) if f.rule == "gb-item"]
    assert found
    for finding in found:
        assert package(finding.location.file) is None
        assert package(finding.inside.file) in ("netslib", "metricslib")
        assert "move your own call" in finding.what_to_do
        assert finding.snippet.text == "torch._dynamo.config.capture_scalar_outputs = True"

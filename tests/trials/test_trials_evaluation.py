"""Scripts of the evaluation set, as users write them: patches follow from their expected causes."""

import ast
from pathlib import Path

import pytest
from msgspec.structs import replace
from test_trials_remedies import finding

from traceview.collectors.child.patches import applied
from traceview.rules.finding import Location
from traceview.trials.edits import edits

tomllib = pytest.importorskip("tomllib")

EVALUATION = Path(__file__).resolve().parents[2] / "evaluation"
EXPECTED = tomllib.loads((EVALUATION / "expected.toml").read_text(encoding="utf-8"))
#: Scripts whose patch is the same program as the twin that a person wrote.
AS_BY_HAND = (
    *("adaptive_gate", "best_effort_rank", "bird_calls", "galaxy_flow", "local_attention"),
    *("small_controller", "spiking_patch", "story_generator", "verbose_block", "volcano_tremor"),
)


def as_list(value):
    return [value] if isinstance(value, str) else value


def main_of(name):
    folder = EVALUATION / "scripts" / name
    return folder / "main.py" if folder.is_dir() else folder.with_suffix(".py")


def written(name):
    """Texts of the main file with each patch that follows from an expected cause."""
    main, found = main_of(name), {}
    text = main.read_text(encoding="utf-8")
    for cause in EXPECTED[name].get("causes", ()):
        known = as_list(cause["lines"])
        lines = [n for n, row in enumerate(text.split("\n"), 1) if row.strip() in known]
        for rule in as_list(cause["rules"]):
            places = [Location(str(main), line) for line in lines]
            if not places or main.name not in as_list(cause["file"]):
                continue
            one = replace(finding(rule), location=places[0], also_at=tuple(places[1:]))
            made = edits(one, {str(main): text}.get, str(main.parent))
            found |= {applied(text, each.patch + "\n"): rule for each in made}
    return found


@pytest.mark.parametrize("name", AS_BY_HAND)
def test_the_patch_is_what_a_person_wrote(name):
    twin = main_of(name).with_suffix(".fixed.py").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(twin)) in {ast.dump(ast.parse(text)) for text in written(name)}


def test_most_scripts_with_a_twin_get_a_patch_that_is_python():
    twins = [name for name in EXPECTED if main_of(name).with_suffix(".fixed.py").is_file()]
    patched = {name: texts for name in twins if (texts := written(name))}
    for text in (text for texts in patched.values() for text in texts):
        ast.parse(text)
    assert len(patched) >= 47

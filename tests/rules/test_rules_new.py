"""``traceview rules new``: the files of a rule that is not filled in yet."""

import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from click.testing import CliRunner
from rule_scenarios import marks

from traceview.cli.new_rule import checkout, write
from traceview.cli.rules import rules_command
from traceview.errors import UsageError
from traceview.rules import run_rules
from traceview.rules.registry import SECTIONS, rule_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    """As much of a checkout as the command looks at."""
    for folder in ("traceview/rules", "tests/rules", "fixtures/scenarios/bad"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "fixtures" / "scenarios" / "good").mkdir()
    for name in ("traceview/rules/registry.py", "tests/rules/codes.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_new_rule_is_one_of_the_catalogue_and_finds_nothing(tree, make):
    rule, bad, good, codes = write(tree, "gb-new-thing")
    spec = spec_from_file_location("gb_new_thing", rule)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("gb_new_thing", None)
    made = rule_of(module, "gb-new-thing")
    assert tuple(made.sections) == SECTIONS
    assert run_rules(make(compiles=[{"compile_id": "0/0"}]), [made]) == ((), ())
    before = (ROOT / "tests" / "rules" / "codes.txt").read_text().splitlines()
    (line,) = set(codes.read_text().splitlines()) - set(before)
    last = max(old.split()[0] for old in before if old.startswith("TV1"))
    assert line == f"TV{int(last[2:]) + 1} gb-new-thing"
    assert made.code == line.split()[0]
    assert list(marks(bad)) == ["gb-new-thing"]
    assert marks(good) == {}


def test_the_command_says_what_is_next(tree, monkeypatch):
    monkeypatch.chdir(tree / "fixtures")
    done = CliRunner().invoke(rules_command, ["new", "rc_new_thing"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "traceview/rules/rc_new_thing.py" in done.output
    assert "python fixtures/record.py bad/rc_new_thing good/rc_new_thing" in done.output
    assert "make docs-rules" in done.output


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("gb-item", "gb-item has the code TV101 already"),
        ("item", "item is no name for a rule"),
        ("xx-item", "xx-item is no name for a rule"),
    ],
)
def test_a_name_that_cannot_be(tree, name, fact):
    with pytest.raises(UsageError, match=fact):
        write(tree, name)


def test_nothing_is_overwritten(tree):
    there = tree / "fixtures" / "scenarios" / "bad" / "gb_new.py"
    there.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write(tree, "gb-new")
    assert there.read_text() == "mine"
    assert not (tree / "traceview" / "rules" / "gb_new.py").exists()


def test_only_in_a_checkout(tmp_path):
    with pytest.raises(UsageError, match="not in a checkout"):
        checkout(tmp_path)

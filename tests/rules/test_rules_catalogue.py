"""The catalogue itself: every rule is documented, named, needed tables exist, scenarios exist."""

import ast
import inspect
import re
from pathlib import Path

import pytest
from rule_scenarios import SCENARIOS

from traceview.rules import catalogue, run_rules
from traceview.rules.docs import book, page
from traceview.rules.needs import known
from traceview.rules.registry import SECTIONS, SETTINGS, module_of, severities
from traceview.schema import all_tables
from traceview.tables import Tables

ROOT = Path(__file__).resolve().parents[2]
RULES = {rule.name: rule for rule in catalogue()}
COLUMNS = {column.name for spec in all_tables().values() for column in spec.columns}
STALE = ("nvfuser", "onnxrt", "explain(f,", "prologue fusion", "cuda_time_total")


@pytest.fixture(params=RULES)
def rule(request):
    return RULES[request.param]


def test_every_module_is_in_the_catalogue():
    folder = ROOT / "traceview" / "rules"
    with_code = (
        path for path in folder.glob("*.py") if re.search(r"^CODE = ", path.read_text(), re.M)
    )
    modules = {path.stem for path in with_code}
    assert modules == {name.replace("-", "_") for name in RULES}


def test_codes_are_unique_and_in_order():
    codes = [rule.code for rule in catalogue()]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"TV[1-9]\d\d", code) for code in codes)


def test_sections_in_order(rule):
    assert tuple(rule.sections) in (SECTIONS, (*SECTIONS[:-1], SETTINGS, SECTIONS[-1]))
    assert all(rule.sections.values())


def test_settings_are_documented_and_numbers(rule):
    documented = re.findall(r"^- `(\w+)`:", rule.sections.get(SETTINGS, ""), re.M)
    assert documented == list(rule.settings)
    assert all(isinstance(value, (int, float)) for value in rule.settings.values())


def test_rules_that_it_follows_exist(rule):
    assert rule.follows <= set(RULES) - {rule.name}


def test_references_name_docs_and_torch_sources(rule):
    references = rule.sections["References"].splitlines()
    assert all(line.startswith("- ") for line in references)
    assert any("https://docs.pytorch.org/" in line for line in references)
    assert any(re.match(r"- torch/[\w/]+\.(py|json)", line) for line in references)


def test_torch_sources_that_are_named_exist(rule):
    torch = pytest.importorskip("torch")
    root = Path(torch.__file__).parent
    for path in re.findall(r"^- torch/([\w/]+\.(?:py|json))", rule.sections["References"], re.M):
        assert (root / path).exists(), path


def test_needed_tables_are_declared_and_have_words(rule):
    assert rule.needs <= set(all_tables())
    assert rule.needs <= known()


def test_tables_and_columns_that_the_source_reads_exist(rule):
    tree = ast.parse(inspect.getsource(module_of(rule.name)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "rows",
            "first",
            "frame",
        ):
            table = node.args[1].value
            assert table in all_tables(), f"line {node.lineno}: {table}"
            declared = {column.name for column in all_tables()[table].columns}
            assert {keyword.arg for keyword in node.keywords} <= declared
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            name = node.slice.value
            if isinstance(name, str) and not name.startswith("_") and name.islower():
                assert name in COLUMNS | {"eager", "compiled"}, f"line {node.lineno}: {name}"


def test_findings_carry_the_rules_own_name(rule):
    assert f'rule="{rule.name}"' in inspect.getsource(module_of(rule.name))


def test_no_stale_advice(rule):
    source = inspect.getsource(module_of(rule.name))
    assert not [words for words in STALE if words in source]


def test_every_rule_has_a_bad_and_a_good_scenario(rule):
    bad, good = SCENARIOS[rule.name]
    for scenario in (*bad, *good):
        assert (ROOT / "fixtures" / "scenarios" / f"{scenario.name}.py").exists(), scenario.name
    assert bad
    assert good


def test_marked_lines_exist():
    for bad, _ in SCENARIOS.values():
        for scenario in bad:
            if scenario.line is not None:
                text = (ROOT / "fixtures" / "scenarios" / f"{scenario.name}.py").read_text()
                assert scenario.line in text


def test_a_rule_without_its_tables_is_not_checked(rule):
    findings, unchecked = run_rules(Tables(), [rule])
    assert findings == ()
    assert unchecked[0].rule == rule.name
    assert unchecked[0].needs
    assert unchecked[0].command


def test_a_rule_with_empty_tables_finds_nothing(rule, make):
    findings, unchecked = run_rules(make(**{name: [] for name in rule.needs}), [rule])
    assert (findings, unchecked) == ((), ())


def test_a_page_has_every_section_and_severity(rule):
    text = page(rule)
    assert text.startswith(f"# {rule.name} ({rule.code})\n")
    assert all(f"\n## {section}\n" in text for section in SECTIONS)
    assert severities(rule)


def test_the_docs_page_is_up_to_date():
    written = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert written == book(), "run: python -m traceview.rules.docs > docs/rules.md"

"""The catalogue itself: what every rule must have, so that it can be found, believed and chosen."""

import ast
import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from rule_reads import reads, subscripts
from rule_scenarios import SCENARIOS, SCRIPTS, SILENT_TOO, marks, recorded

from traceview.rules import catalogue, needs, run_rules
from traceview.rules.choice import shown
from traceview.rules.docs import FOLDER, page, pages
from traceview.rules.finding import SEVERITIES
from traceview.rules.registry import SECTIONS, SETTINGS
from traceview.schema import all_tables
from traceview.tables import Tables

ROOT = Path(__file__).resolve().parents[2]
RULES = {rule.name: rule for rule in catalogue()}
RECORDED = recorded()
#: Every code and name that was ever given out, one a line, in order. Lines are only added.
CODES = Path(__file__).with_name("codes.txt")
#: Names in square brackets that are no column: the stances of a pair.
STANCES = {"eager", "compiled"}
#: What every run that traceview collected has: to need it is to need such a run.
RUN = {"runs"}
#: Every run that the collector told of has it, or another log tells the same as it.
OTHERWISE_KNOWN = {"runs", "sources", "calls", "cudagraph_events"}
STALE = ("nvfuser", "onnxrt", "explain(f,", "prologue fusion", "cuda_time_total")


def _bad(rule):
    return SCENARIOS.get(rule.name, ((), ()))[0]


def source_of(rule):
    return inspect.getsource(import_module(rule.module))


def needed(needs):
    """The tables that these needs are about."""
    return {re.split("[:.]", one)[0] for need in needs for one in need.split("|")}


#: What holds for every rule by itself: pytest takes longer for a test than these do.
CHECKS = []


def of_every_rule(check):
    CHECKS.append(check)
    return check


@pytest.fixture(params=RULES)
def rule(request):
    return RULES[request.param]


def test_it_is_as_every_rule_is(rule):
    for holds in CHECKS:
        holds(rule)


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


def test_codes_and_names_are_for_ever():
    """A rule is renamed or taken away only with its users' pyproject.toml and comments."""
    given = CODES.read_text(encoding="utf-8").splitlines()
    assert given == sorted(set(given))
    now = {f"{rule.code} {rule.name}" for rule in catalogue()}
    assert set(given) - now == set(), "given out once, and gone now"
    assert now - set(given) == set(), "new: add these lines to tests/rules/codes.txt"


@of_every_rule
def its_sections_are_in_order(rule):
    assert tuple(rule.sections) in (SECTIONS, (*SECTIONS[:-1], SETTINGS, SECTIONS[-1]))
    assert all(rule.sections.values())


@of_every_rule
def its_settings_are_documented_and_numbers(rule):
    documented = re.findall(r"^- `(\w+)`:", rule.sections.get(SETTINGS, ""), re.M)
    assert documented == list(rule.settings)
    assert all(isinstance(value, (int, float)) for value in rule.settings.values())


@of_every_rule
def its_settings_are_used_and_their_defaults_have_names(rule):
    (check,) = (
        node
        for node in ast.parse(source_of(rule)).body
        if isinstance(node, ast.FunctionDef) and node.name == "check"
    )
    assert [argument.arg for argument in check.args.args] == ["tables"]
    loaded = {node.id for node in ast.walk(check) if isinstance(node, ast.Name)}
    for setting, default in zip(check.args.kwonlyargs, check.args.kw_defaults, strict=True):
        assert setting.arg in loaded, f"{setting.arg} is never used"
        assert getattr(default, "id", None) == setting.arg.upper()


@of_every_rule
def its_own_severities_are_stated(rule):
    stated = import_module(rule.module).SEVERITIES
    assert stated == tuple(one for one in SEVERITIES if one in stated) != ()


def test_a_family_that_is_followed_is_spelled_out():
    """A new rule on graph breaks is a cause of fragmentation without an edit there."""
    assert {"gb-item", "gb-frame-skipped"} < RULES["gb-fragmented"].follows
    assert "gb-fragmented" not in RULES["gb-fragmented"].follows
    assert "gb-fragmented" not in RULES["rc-resumed-value"].follows, "it sums the family up"
    assert "rc-auto-dynamic" not in RULES["rc-limit-hit"].follows, "it is no cause"
    assert "rc-dynamic-false" not in RULES["sv-cold-requests"].follows, "that one follows it"


@of_every_rule
def rules_that_it_follows_exist(rule):
    assert rule.follows <= set(RULES) - {rule.name}


@of_every_rule
def its_references_name_docs_and_torch_sources(rule):
    references = rule.sections["References"].splitlines()
    assert all(line.startswith("- ") for line in references)
    assert any("https://docs.pytorch.org/" in line for line in references)
    assert any(re.match(r"- torch/[\w/]+\.(py|json)", line) for line in references)


@of_every_rule
def torch_sources_that_it_names_exist(rule):
    torch = find_spec("torch")
    if torch is None:
        return
    root = Path(torch.origin).parent
    for path in re.findall(r"^- torch/([\w/]+\.(?:py|json))", rule.sections["References"], re.M):
        assert (root / path).exists(), path


@of_every_rule
def its_needs_are_declared_and_have_words(rule):
    assert needs.unknown(rule.needs) == []
    words, command = needs.in_words(rule.needs)
    assert words
    assert command


@of_every_rule
def what_it_needs_it_reads(rule):
    found = reads(rule.module)
    assert needed(rule.needs) - found.tables - RUN == set(), "needed and never read"
    alternatives = {one for need in rule.needs for one in need.split("|")}
    columns = {one.partition(".")[2] for one in alternatives if "." in one}
    assert columns - found.columns == set(), "needed and never read"


@of_every_rule
def the_columns_that_it_reads_are_of_its_tables(rule):
    declared = {
        column.name for name in reads(rule.module).tables for column in all_tables()[name].columns
    }
    groups = set(re.findall(r"\(\?P<(\w+)>", source_of(rule)))
    for line, name in subscripts(rule.module):
        own = name.startswith("_") or not name.islower()
        assert own or name in declared | STANCES | groups, f"line {line}: {name}"


def test_it_does_not_fail_or_fall_silent_without_a_table(rule, tables_of):
    """Where a table is missing that a rule keeps silent without, it must say: not checked."""
    runs = [scenario.run for scenario in _bad(rule) if scenario.run in RECORDED]
    if not runs:
        pytest.skip("its bad scenario is not recorded yet")
    tables = tables_of(runs[0])
    least = needed(rule.needs) & set(tables)
    findings, _ = run_rules(Tables({name: tables[name] for name in least}), [rule])
    assert all(finding.evidence for finding in findings)
    found = len(run_rules(tables, [rule])[0])
    optional = reads(rule.module).tables - needed(rule.needs) - OTHERWISE_KNOWN
    for missing in sorted(name for name in optional if tables.has(name)):
        least = Tables({name: tables[name] for name in tables if name != missing})
        findings, unchecked = run_rules(least, [rule])
        assert len(findings) >= found or unchecked, f"silent without {missing}"


@of_every_rule
def its_findings_carry_its_own_name(rule):
    assert f'rule="{rule.name}"' in source_of(rule)


@of_every_rule
def it_gives_no_stale_advice(rule):
    source = source_of(rule)
    assert not [words for words in STALE if words in source]


@of_every_rule
def it_has_a_bad_and_a_good_scenario(rule):
    bad, good = SCENARIOS.get(rule.name, ((), ()))
    for scenario in (*bad, *good):
        assert (SCRIPTS / f"{scenario.name}.py").exists(), scenario.name
    assert bad, "mark a line of its bad scenario with `# finding: NAME-OF-THE-RULE`"
    assert good


def test_marks_and_names_of_scenarios_are_those_of_rules():
    assert set(SCENARIOS) | set(SILENT_TOO) <= set(RULES)
    for path in (SCRIPTS / "bad").glob("*.py"):
        assert marks(path), f"{path.name} marks no line with `# finding: NAME-OF-THE-RULE`"
    good = {scenario.name for _, good in SCENARIOS.values() for scenario in good}
    for path in (SCRIPTS / "good").glob("*.py"):
        assert f"good/{path.stem}" in good, f"{path.name} begins with the name of no rule"


@of_every_rule
def without_its_tables_it_is_not_checked(rule):
    findings, unchecked = run_rules(Tables(), [rule])
    assert findings == ()
    assert unchecked[0].rule == rule.name
    assert unchecked[0].needs
    assert unchecked[0].command


def test_a_rule_with_empty_tables_finds_nothing(make):
    for rule in catalogue():
        findings, _ = run_rules(make(**{name: [] for name in needed(rule.needs)}), [rule])
        assert findings == (), rule.name


@of_every_rule
def its_page_has_every_section_and_setting(rule):
    text = page(rule)
    assert text.startswith(f"# {rule.name} ({rule.code})\n")
    for section, words in rule.sections.items():
        assert f"\n## {section}\n\n" in text
        assert section == SETTINGS or words in text
    assert all(f"\n- `{name}` = {shown(value)}: " in text for name, value in rule.settings.items())


def test_the_pages_are_up_to_date():
    docs = ROOT / "docs"
    made = pages()
    written = {f"{FOLDER}/{path.name}" for path in (docs / FOLDER).glob("*.md")}
    stale = [
        name
        for name, text in made.items()
        if not (docs / name).exists() or (docs / name).read_text(encoding="utf-8") != text
    ]
    stale += sorted(written - set(made))
    assert stale == [], "run: make docs-rules"

"""Rules of other packages: by entry point, refused in one sentence, unable to break anything."""

import sys
from importlib.metadata import EntryPoint

import pytest
from msgspec.structs import replace

from traceview.rules import Finding, catalogue, run_rules
from traceview.rules.kit import Cost, Evidence
from traceview.rules.needs import unmet
from traceview.rules.plugins import GROUP, with_entry_points

DOC = '''"""
## What it finds
A region.

## Why it costs
It need not.

## Evidence
The region.

## What to do
Nothing.

## References
- https://example.org
"""
'''
FRONT = """
CODE = "XX101"
NEEDS = frozenset({"regions"})

def check(tables):
    yield from ()
"""


class Dist:
    name, version = "xx-rules", "1.0"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A function: names of entry points with the sources of their modules → what is installed."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def loaded(**sources):
        points = []
        for name, source in sources.items():
            module = f"xx_{len(made)}_{name}"
            made.append(module)
            (tmp_path / f"{module}.py").write_text(source)
            point = EntryPoint(name.replace("_", "-"), module, GROUP)
            vars(point).update(dist=Dist)
            points.append(point)
        return with_entry_points(catalogue(), points)

    yield loaded
    for module in made:
        sys.modules.pop(module, None)


def test_it_stands_beside_ours(load):
    found = load(xx_region=DOC + FRONT)
    rule = found.rules[-1]
    assert found.refused == ()
    assert (rule.name, rule.code, rule.origin) == ("xx-region", "XX101", "xx-rules 1.0")
    assert found.rules[:-1] == catalogue()


def test_a_setting_that_is_a_float_may_have_a_whole_default(load):
    check = FRONT.replace("(tables)", "(tables, *, share: float = 1, most: int = 1)")
    settings = load(xx_region=DOC + check).rules[-1].settings
    assert {name: type(value) for name, value in settings.items()} == {"share": float, "most": int}


@pytest.mark.parametrize(
    ("name", "source", "why"),
    [
        ("xx_a", "import no_such_module", "can't be loaded (ModuleNotFoundError: No module named"),
        ("xx_a", "def", "can't be loaded (SyntaxError"),
        ("xx_a", "raise SystemExit(3)", "can't be loaded (SystemExit: 3)"),
        ("xx_a", DOC, "can't be loaded (AttributeError"),
        ("xx_a", FRONT, "its docstring has no section 'What it finds'"),
        ("Xx", DOC + FRONT, "a name is made of words in small letters"),
        ("gb_item", DOC + FRONT, "traceview has a rule of that name"),
        ("xx_a", DOC + FRONT.replace("XX101", "TV999"), "codes that begin with TV are traceview's"),
        ("xx_a", DOC + FRONT.replace("XX101", "1"), "its code '1' is not two or more capital"),
        ("xx_a", DOC + FRONT.replace("regions", "rows"), "it needs 'rows', which this traceview"),
        ("xx_a", DOC + FRONT.replace("regions", "regions:eager"), "it needs 'regions:eager'"),
        ("xx_a", DOC + FRONT + "SEVERITIES = ('fatal',)", "its SEVERITIES ('fatal',) are not some"),
        (
            "xx_a",
            DOC + FRONT.replace("(tables)", "(tables, *, a)"),
            "its setting 'a' has no number",
        ),
    ],
)
def test_one_that_cannot_be_used(load, name, source, why):
    found = load(**{name: source})
    assert found.rules == catalogue()
    (refused,) = found.refused
    assert why in refused.why
    assert refused.sentence.startswith(f"The rule {name.replace('_', '-')} of xx-rules 1.0 is not")
    assert "\n" not in refused.sentence


def test_who_comes_first_keeps_the_code(load):
    found = load(xx_b=DOC + FRONT, xx_a=DOC + FRONT)
    assert found.rules[-1].name == "xx-a"
    assert found.refused[0].why == "its code XX101 is that of xx-a of xx-rules 1.0"


def test_its_findings_look_like_ours(load, make):
    body = FRONT.replace("yield from ()", "yield FINDING")
    found = load(xx_region=DOC + body)
    finding = Finding(
        "XX101", "xx-region", "info", "t", "", Cost(1.0), "measured", None,
        (Evidence("x", "regions"),), "", about=frozenset({"/u/a.py:1"}),
    )  # fmt: skip
    sys.modules[found.rules[-1].module].FINDING = finding
    tables = make(regions=[])
    assert run_rules(tables, found.rules[-1:]) == ((finding,), ())


def test_what_it_prints_is_no_part_of_our_stdout(load, make, capsys):
    loud = "print('loaded')\n" + FRONT.replace("yield from ()", "yield from [print('checked')][:0]")
    found = load(xx_region=DOC + loud)
    assert run_rules(make(regions=[]), found.rules[-1:]) == ((), ())
    out, err = capsys.readouterr()
    assert (out, err) == ("", "loaded\nchecked\n")


def test_one_of_ours_that_fails_costs_its_own_findings_only(make, capsys):
    ours, tables = catalogue(), make(graph_breaks=[], regions=[])
    at = next(n for n, rule in enumerate(ours) if unmet(tables, rule.needs, gpu_only=False) is None)

    def check(tables):
        yield from ()
        raise KeyError("x")

    broken = [*ours[:at], replace(ours[at], check=check, settings={}), *ours[at + 1 :]]
    findings, unchecked = run_rules(tables, broken)
    others = run_rules(tables, [*ours[:at], *ours[at + 1 :]])
    assert findings == others[0]
    (failed,) = set(unchecked) - set(others[1])
    assert failed.rule == ours[at].name
    assert failed.needs.startswith("a repair in traceview: KeyError: 'x'")
    assert f"rule {ours[at].code} has a defect: KeyError: 'x'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("raise SystemExit('enough')", "SystemExit: enough"),
        ("yield F('XX101', 'xx-region', 'info', C(float('inf')))", "a cost is not finite"),
        ("yield 'a finding'", "ValidationError: Expected `object`, got `str`"),
        ("yield F('XX101', 'gb-item', 'info', C())", "it gave a finding of gb-item (XX101)"),
        ("yield F('XX101', 'xx-region', 'fatal', C())", "Invalid enum value 'fatal'"),
        ("yield F('XX101', 'xx-region', 'info', C('1 ms'))", "Expected `float | null`"),
        ("yield F('XX101', 'xx-region', 'info', C(), ())", "a finding without evidence"),
    ],
)
def test_one_that_fails_is_not_checked_and_all_else_goes_on(load, make, line, why):
    body = (
        "from traceview.rules.kit import Cost as C, Evidence, Finding\n"
        "def F(code, rule, severity, cost, evidence=(Evidence('x', 'regions'),)):\n"
        "    return Finding(code, rule, severity, 't', '', cost, 'measured', None, evidence, '')\n"
    )
    found = load(xx_region=DOC + body + FRONT.replace("yield from ()", line))
    tables = make(graph_breaks=[], regions=[])
    ours = run_rules(tables, catalogue())
    findings, unchecked = run_rules(tables, found.rules)
    assert findings == ours[0]
    (broken,) = set(unchecked) - set(ours[1])
    assert (broken.rule, broken.command) == ("xx-region", None)
    assert broken.needs.startswith("a repair in xx-rules 1.0: ")
    assert why in broken.needs

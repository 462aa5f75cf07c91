"""The layout's own rules: imports point down, without circles; start-up stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {
    "traceview": "traceview",
    "collectors": "traceview.collectors",
    "reports": "traceview.reports",
}

#: Lower number = further down. A module may import its own floor and those below.
FLOORS = {
    "traceview.errors": 0,
    "traceview.json_errors": 0,
    "traceview.compile_id": 0,
    "traceview.contracts": 0,
    "traceview.limits": 0,
    "traceview.memory": 0,
    "traceview.run": 0,
    "traceview.words": 0,
    "traceview.torchtext": 0,
    "traceview.schema": 1,
    "traceview.tables": 1,
    "traceview.inputs": 1,
    "traceview.parse": 2,
    "traceview.query": 2,
    "traceview.derive": 3,
    "traceview.reading": 3,
    "traceview.rules": 4,
    "traceview.diagnosis": 5,
    "traceview.compare": 6,
    "traceview.rollout": 6,
    "traceview.trials": 6,
    "traceview.compiles": 4,
    "traceview.testing": 6,
    "traceview.callbacks": 6,
    "traceview.otel": 6,
    "traceview.check": 7,
    "traceview.pytest_plugin": 7,
    "traceview.collectors": 8,
    "traceview.reports": 8,
    "traceview.demos": 8,
    "traceview.agents": 8,
    "traceview.ticket": 8,
    "traceview.cli": 9,
    "traceview.__main__": 10,
}
#: Rooms on one floor that must not know each other.
SIDE_ROOMS = {"traceview.collectors", "traceview.reports"}
#: Circles that are known and about to go, with the reason; one that is gone must leave this list.
KNOWN_CIRCLES = set()
#: Modules with one importer, and the part of private functions that are called once: at most so
#: many. Lower them when there are fewer.
MOST_ALONE, MOST_ONCE = 110, 0.45
#: What runs in the target's process: the standard library and the torch that is there.
CHILD_MAY_IMPORT = set(sys.stdlib_module_names) | {"torch", "triton", "_traceview_child", "pynvml"}


def _modules():
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join((package, *(part for part in parts if part != "__init__")))
            yield name, path


MODULES = dict(_modules())


def _floor(module):
    while module:
        if module in FLOORS:
            return module, FLOORS[module]
        module = module.rpartition(".")[0]
    return None


@cache
def _tree(name):
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def _imports(name):
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_point_down():
    upward, across = [], []
    for name in filter(_floor, MODULES):
        room, floor = _floor(name)
        for imported in _imports(name):
            target = _floor(imported)
            if target is None or target[0] == room:
                continue
            if target[1] > floor:
                upward.append(f"{name} imports {imported}, which is above it")
            if {room, target[0]} >= SIDE_ROOMS:
                across.append(f"{name} knows the other side room: {imported}")
    assert (upward, across) == ([], [])


def _targets(name):
    """The modules of the tree that ``name`` imports, at the top or in a function.

    Of ``from package import module`` that is the module, not the package around it.
    """
    package = name.split(".") if MODULES[name].name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            around = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*around, *([node.module] if node.module else [])])
            inner = {f"{source}.{alias.name}" for alias in node.names}
            yield from inner & set(MODULES)
            if source in MODULES and not inner <= set(MODULES):
                yield source


def _circles(graph):
    """Sets of nodes that reach each other."""
    reached = {node: set(others) for node, others in graph.items()}
    changed = True
    while changed:
        changed = False
        for mine in reached.values():
            further = set().union(*(reached.get(node, ()) for node in mine)) - mine
            mine |= further
            changed = changed or bool(further)
    return {
        frozenset(n for n in reached[node] if node in reached.get(n, ()))
        for node in reached
        if node in reached[node]
    }


def test_no_circles():
    """Neither between modules nor between the modules and packages that share a package."""
    modules = {name: set(_targets(name)) - {name} for name in MODULES}
    siblings = {}
    for name, targets in modules.items():
        for target in targets:
            pairs = list(zip(name.split("."), target.split("."), strict=False))
            same = next((n for n, (one, other) in enumerate(pairs) if one != other), None)
            if same is not None:
                mine, theirs = (".".join(m.split(".")[: same + 1]) for m in (name, target))
                siblings.setdefault(mine, set()).add(theirs)
    found = _circles(modules) | _circles(siblings)
    assert found - KNOWN_CIRCLES == set()
    assert KNOWN_CIRCLES - found == set(), "these circles are gone: remove them from the list"


def test_every_module_has_a_floor():
    homeless = [n for n in MODULES if _floor(n) is None and n != "traceview"]
    assert homeless == []


def test_the_child_needs_only_the_standard_library_and_torch():
    child = [name for name in MODULES if name.startswith("traceview.collectors.child")]
    outside = {
        f"{name} imports {module}"
        for name in child
        for module in _imports(name)
        if module.partition(".")[0] not in CHILD_MAY_IMPORT
    }
    assert child
    assert outside == set()


def test_no_module_holds_two_ideas():
    """Above 500 lines there are most likely two; below that it is the reader who judges."""
    lines = {n: len(p.read_text(encoding="utf-8").splitlines()) for n, p in MODULES.items()}
    assert {name: count for name, count in lines.items() if count > 500} == {}


def test_functions_can_be_read_at_once():
    long = []
    for name in MODULES:
        for node in ast.walk(_tree(name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                length = (node.end_lineno - body[0].lineno + 1) if body else 0
                if length > 60:
                    long.append(f"{name}.{node.name}: {length} lines")
    assert long == []


def test_modules_say_what_they_are():
    assert [name for name in MODULES if not ast.get_docstring(_tree(name))] == []


def test_no_print_in_the_library():
    calls = (
        (name, node)
        for name in MODULES
        if not name.startswith("traceview.demos.")
        for node in ast.walk(_tree(name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    assert [f"{name}:{node.lineno}" for name, node in calls if node.func.id == "print"] == []


def test_importing_traceview_is_light():
    code = "import sys, traceview; print(*sorted(m.partition('.')[0] for m in sys.modules))"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy = {"polars", "jinja2", "click", "torch", "numpy", "msgspec", "pygments"}
    assert heavy.isdisjoint(loaded.stdout.split())


def test_help_imports_no_heavy_library():
    code = (
        "import sys\nfrom traceview.cli import traceview\n"
        "try: traceview(['--help'])\nexcept SystemExit: pass\n"
        "print(*sorted(m.partition('.')[0] for m in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "diagnose" in done.stdout
    assert {"polars", "jinja2", "torch", "numpy", "pygments"}.isdisjoint(done.stderr.split())


#: Calls that decode JSON which others wrote, as they are written here.
_DECODE = re.compile(
    r"json\.loads\(|json\.decode\(|[dD][eE][cC][oO][dD][eE][rR]\.decode\(|[A-Z_]{4,}\.decode\("
)


def test_whoever_decodes_json_expects_all_that_it_may_raise():
    """Deep nesting is a RecursionError, which no decoder's own error covers."""
    narrow = []
    for name in MODULES:
        if name.startswith("traceview.collectors") or name == "traceview.json_errors":
            continue
        for node in ast.walk(_tree(name)):
            if isinstance(node, ast.Try) and node.handlers:
                body = "\n".join(map(ast.unparse, node.body))
                caught = " ".join(ast.unparse(h.type) for h in node.handlers if h.type)
            elif isinstance(node, ast.With) and "suppress(" in ast.unparse(node.items[0]):
                body, caught = "\n".join(map(ast.unparse, node.body)), ast.unparse(node.items[0])
            else:
                continue
            if _DECODE.search(body) and "NOT_JSON" not in caught + body:
                narrow.append(f"{name}:{node.lineno} catches {caught}")
    assert narrow == []


def test_few_modules_have_one_importer():
    """What only one module needs belongs to it more often than not; lower this, never raise it."""
    importers = {name: set() for name in MODULES}
    for name in MODULES:
        for target in set(_targets(name)) - {name}:
            importers[target].add(name)
    alone = [n for n, by in importers.items() if len(by) == 1 and MODULES[n].name != "__init__.py"]
    assert len(alone) <= MOST_ALONE, sorted(alone)


def test_few_private_functions_are_called_once():
    """A step that is used once and says no more than its body does is read in place."""
    private = once = 0
    for name, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        for node in _tree(name).body:
            if isinstance(node, ast.FunctionDef) and re.match("_[^_]", node.name):
                private += 1
                once += len(re.findall(rf"\b{node.name}\b", text)) == 2
    assert once <= MOST_ONCE * private, f"{once} of {private}"

"""Tables made from the run's copies of the user's own files, read with ``ast``.

``source_lines``    the lines that call torch.compile, so that a change can be shown against them,
                    those that led to a compiled call, and those that the exception passed which
                    ended the script
``setting_sites``   lines that name a setting of torch's. What value a setting has is recorded, not
                    who gave it; a line that names it is where to look
``lines_to_add``   the line that compiles what traceview compiled for the user (--compile)
``backward_calls``  where gradients are asked for. A script that was stopped early may not have come
                    there yet: what did not run proves nothing about the rest of it
``noted_lines``    statements that findings point to: a profile shows what they do, not where
``cached_calls``    calls of functions with a cache that Dynamo warned about, and those functions
``class_sites``    where functions make the classes that guards on types have met
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import polars as pl

from traceview.derive.facts.places import frames
from traceview.derive.facts.slow_switches import SEPARATE
from traceview.derive.syntax import (
    Function,
    ReadSource,
    covers,
    function_at,
    last_name,
    loops_around,
    syntax_tree,
)
from traceview.tables import Tables, from_rows
from traceview.torchtext.frames import CACHED_CALL

LINE_CHARACTERS = 300
#: More lines than this about one file are no settings.
MOST_SITES = 200
#: torch's names of dtypes of 16 bits, and of the methods that convert to them.
_SHORT = {"half": "float16", "float16": "float16", "bfloat16": "bfloat16"}
#: Methods that run a backward, of tensors or of what trains for the user.
_METHODS = frozenset({"backward", "manual_backward", "fit"})
#: Functions that compute gradients, in torch.autograd, its ``functional``, and torch.func.
_FUNCTIONS = frozenset(
    {"grad", "grad_and_value", "vjp", "jacobian", "jacrev", "jacfwd", "hessian", "hvp", "vhp"}
)
_MODULES = ("autograd", "functional", "func", "functorch")
#: Arguments of torch.compile that --compile-options sets, as table ``regions`` has their defaults.
_ARGUMENTS = {"mode": "None", "backend": "inductor", "dynamic": "None", "fullgraph": "False"}
#: Settings that are made by a call: ``set_…``, ``use_…``, or a context of that name.
_CALLED = frozenset({"autograd.detect_anomaly", "deterministic_algorithms"})
#: A setting of a common name: where its owner is named as well, or where such a call has it.
_BENCHMARK, _BENCHMARK_CALLS = "cudnn.benchmark", ("flags", "set_flags", "Trainer")
#: The same, where cudnn is named in any case.
_CUDNN, _CUDNN_CALLS = "cudnn.enabled", ("cudnn.flags", "cudnn.set_flags")
#: Backends of attention: calls that switch one off, arguments of an older context that do, and what
#: ``sdpa_kernel`` leaves. SEPARATE is the name of a context that leaves no fused one.
_ATTENTION = ("flash_sdp", "mem_efficient_sdp", "cudnn_sdp")
_ONLY_MATH = frozenset({"MATH"})
#: Schedulers that change the momentum, or the first of betas, along with the learning rate.
_CYCLING = ("CyclicLR", "OneCycleLR")
#: Calls that give a tensor other storage, and those that have a function called with a gradient.
_SWAPS = frozenset({"set_", "swap_tensors", "vector_to_parameters"})
_HOOKS = frozenset({"register_post_accumulate_grad_hook", "register_hook"})
_CLASSES = frozenset({"Trainer", "SFTTrainer", "Seq2SeqTrainer"})
#: Functions that make a class by the name that is their first argument.
_MAKERS = frozenset(
    {
        *("namedtuple", "NamedTuple", "make_dataclass", "make_class", "create_model", "defstruct"),
        *("new_class", "type", "Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"),
    }
)
_CLASS_MET = re.compile(r"<class '(?:[^']*\.)?(\w+)'>")


def source_lines(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``source_lines``; ``read_source`` gives a file's text, None where there is no copy."""
    calls = tables["regions"].select("pass", file="call_file", line="call_line")
    places = calls.drop_nulls().unique(maintain_order=True).to_dicts()
    for run in tables["runs"].iter_rows(named=True):
        passed = frames(run["error_stack"])
        places += [{"pass": run["pass"], "file": at.file, "line": at.line} for at in passed]
    for region in tables["regions"].iter_rows(named=True):
        led = frames(region["first_call_stack"])
        places += [{"pass": region["pass"], "file": at.file, "line": at.line} for at in led]
    rows = []
    trees: dict[str, ast.Module | None] = {}
    for place in {(each["pass"], each["file"], each["line"]): each for each in places}.values():
        file, line = place["file"], place["line"]
        source = read_source(file) or ""
        lines = source.split("\n")
        if line is not None and 1 <= line <= len(lines):
            text = lines[line - 1].rstrip()
            if file not in trees:
                trees[file] = syntax_tree(source)
            tree = trees[file]
            if text.strip() and len(text) <= LINE_CHARACTERS:
                loops = loops_around(tree, line) if tree else None
                rows.append({**place, "text": text, "loops": loops})
    return from_rows("source_lines", rows)


def lines_to_add(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``lines_to_add``; ``read_source`` gives a file's text, None where there is no copy.

    A module is compiled by its own ``compile()``, as it was in the run, after the assignment that
    made it; a function by a decorator, in a file that imports torch by its name.
    """
    found = tables["compile_targets"].filter(pl.col("status") == "compiled")
    regions = tables["regions"].select("pass", "pid", "region_id", *_ARGUMENTS)
    rows = []
    for row in found.join(regions, on=["pass", "pid", "region_id"]).iter_rows(named=True):
        source = read_source(row["made_file"] or "") or ""
        tree, lines = syntax_tree(source), source.split("\n")
        place = _compile_line(tree, row) if tree and row["made_line"] else None
        if place is not None and len(text := lines[place["line"] - 1].rstrip()) <= LINE_CHARACTERS:
            head = {name: row[name] for name in ("pass", "rank", "region_id")}
            rows.append({**head, "file": row["made_file"], "text": text, **place})
    return from_rows("lines_to_add", rows)


def _compile_line(tree: ast.Module, row: dict[str, Any]) -> dict[str, Any] | None:
    """``line``, ``before`` and ``added`` of table ``lines_to_add``; None: no line would do."""
    arguments = ", ".join(
        f"{name}={value if value in ('True', 'False') else repr(value)}"
        for name, value in ((name, str(row[name])) for name in _ARGUMENTS)
        if value != _ARGUMENTS[name]
    )
    line = row["made_line"]
    if row["kind"] == "function":
        imported = (each.names for each in ast.walk(tree) if isinstance(each, ast.Import))
        if not any(
            name.name == "torch" and not name.asname for names in imported for name in names
        ):
            return None
        added = f"@torch.compile({arguments})" if arguments else "@torch.compile"
        return {"line": line, "before": True, "added": added}
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and covers(node, line)]
    if len(made) != 1 or len(made[0].targets) != 1 or row["instances"] != 1:
        return None
    target = made[0].targets[0]
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return None
    added = f"{ast.unparse(target)}.compile({arguments})"
    return {"line": made[0].end_lineno, "before": False, "added": added}


def setting_sites(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``setting_sites``; ``read_source`` gives a file's text, None where there is no copy."""
    is_mode = pl.col("name") == "dispatch_modes"
    settings = tables["environment"].filter(
        (pl.col("section") == "env")
        | pl.col("section").str.ends_with("_config")
        | is_mode
        | pl.col("name").is_in((_BENCHMARK, _CUDNN))
    )
    rows: list[dict[str, Any]] = []
    for (name_of_pass,), known in settings.group_by("pass", maintain_order=True):
        names = set(known.filter(~is_mode)["name"])
        of_pass = tables["regions"].filter(pl.col("pass") == name_of_pass)
        seen = (*known.filter(is_mode)["value"], *of_pass["dispatch_modes"].drop_nulls())
        modes = {each for text in seen for each in text.split(", ")}
        sources = tables["sources"].filter(pl.col("pass") == name_of_pass)
        for file in sources["file"].unique(maintain_order=True):
            tree = syntax_tree(read_source(file) or "")
            found = list(_sites(tree, names, modes))[:MOST_SITES] if tree else []
            rows += [{"pass": name_of_pass, "file": file, **site} for site in found]
    return from_rows("setting_sites", rows)


def _sites(tree: ast.Module, names: set[str], modes: set[str]) -> Iterator[dict[str, Any]]:
    """In the order of the source: name, line and function of what names one of ``names``.

    Set, quoted or, of ``_CALLED``, called: ``config.name = …``, ``name=…`` in a call, ``"name"``. A
    bare word, such as ``debug``, may be anything's attribute or argument. Of ``modes``, which are
    classes: entered, made there or assigned before. And ``float16`` and ``bfloat16``, where
    they are named.
    """
    made = {
        last_name(target): last_name(node.value.func)
        for node in ast.walk(tree)
        if modes and isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
    }
    waiting: list[tuple[ast.AST, str]] = [(tree, "<module>")]
    while waiting:  # no recursion: an expression may be nested deeper than Python's stack
        node, function = waiting.pop()
        texts: list[str] = []
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute):
                    owner = last_name(target.value)
                    dotted = f"{owner}.{target.attr}"
                    if dotted in names or dotted in (_BENCHMARK, _CUDNN):
                        texts += [dotted]
                    elif "_" in target.attr or "config" in owner:
                        texts += [target.attr]
        elif isinstance(node, ast.keyword) and node.arg and "_" in node.arg:
            texts = [node.arg]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            texts = [text] if "_" in text or ("." in text and text in names) else []
        elif isinstance(node, ast.Call) and (stance := _stance_set(node)) is not None:
            yield {"name": stance, "line": node.lineno, "function": function}
        elif isinstance(node, ast.Call):
            if last_name(node.func) in _BENCHMARK_CALLS:
                texts = [_BENCHMARK for each in node.keywords if each.arg == "benchmark"]
            if (
                f"{last_name(getattr(node.func, 'value', node))}.{last_name(node.func)}"
                in _CUDNN_CALLS
            ):
                set_here = {each.arg for each in node.keywords} & {"enabled", "_enabled"}
                texts += [_CUDNN for _ in set_here]
            for name in _attention_off(node):
                yield {"name": name, "line": node.lineno, "function": function}
            text = last_name(node.func).removeprefix("set_").removeprefix("use_")
            called = (name for name in _CALLED if name.rpartition(".")[2] == text)
            yield from (
                {"name": name, "line": node.lineno, "function": function} for name in called
            )
        if isinstance(node, ast.expr) and (dtype := _short_dtype(node)) is not None:
            yield {"name": dtype, "line": node.lineno, "function": function}
        for what in _entered(node) if modes else ():
            entered = (
                last_name(what.func) if isinstance(what, ast.Call) else made.get(last_name(what))
            )
            if entered in modes:
                yield {"name": entered, "line": what.lineno, "function": function}
        for text in texts:
            for name in names:
                if text == name or text.endswith(f".{name}") or name.endswith(f".{text}"):
                    line = getattr(node, "lineno", None)
                    yield {"name": name, "line": line, "function": function}
        if isinstance(node, Function):
            function = node.name
        waiting += [(child, function) for child in reversed(list(ast.iter_child_nodes(node)))]


def _short_dtype(node: ast.expr) -> str | None:
    """``float16`` of ``torch.half`` and of ``model.half()``."""
    call = node if isinstance(node, ast.Call) and not (node.args or node.keywords) else None
    named = call.func if call is not None else node
    if not isinstance(named, ast.Attribute) or (call is None) != (
        last_name(named.value) == "torch"
    ):
        return None
    return _SHORT.get(named.attr)


def _entered(node: ast.AST) -> list[ast.expr]:
    """The contexts that ``node`` enters: ``with a, b:``, ``stack.enter_context(a)``."""
    if isinstance(node, ast.With):
        return [item.context_expr for item in node.items]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "enter_context":
            return node.args[:1]
        if node.func.attr == "__enter__":
            return [node.func.value]
    return []


def _stance_set(node: ast.Call) -> str | None:
    """``…`` of ``set_stance("…")``."""
    if last_name(node.func) != "set_stance":
        return None
    given = [*node.args, *(each.value for each in node.keywords if each.arg == "stance")]
    first = given[0] if given else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _attention_off(node: ast.Call) -> Iterator[str]:
    """``cuda.flash_sdp`` and the like that a call may switch off, or SEPARATE."""
    called = last_name(node.func)
    given = {
        each.arg: each.value.value
        for each in node.keywords
        if each.arg and isinstance(each.value, ast.Constant)
    }
    if called.startswith("enable_") and (backend := called.removeprefix("enable_")) in _ATTENTION:
        value = node.args[0] if node.args else None
        on = value.value if isinstance(value, ast.Constant) else given.get("enabled")
        if on is not True:
            yield f"cuda.{backend}"
    elif called == "sdp_kernel":
        if given.get("enable_flash") is False and given.get("enable_mem_efficient") is False:
            yield SEPARATE
    elif called == SEPARATE and node.args:
        kinds = node.args[0]
        named = kinds.elts if isinstance(kinds, ast.List | ast.Tuple | ast.Set) else [kinds]
        if {last_name(each) for each in named} == _ONLY_MATH:
            yield SEPARATE


def backward_calls(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``backward_calls``; ``read_source`` gives a file's text, None without a copy."""
    places = tables["sources"].select("pass", "rank", "file")
    rows = (
        {**place, "line": line, "call": call}
        for place in places.iter_rows(named=True)
        for line, call in calls(read_source(place["file"]) or "")
    )
    return from_rows("backward_calls", rows)


def calls(source: str) -> Iterator[tuple[int, str]]:
    """(line, name as written) of every call that asks for gradients, and of torch.optim."""
    tree = syntax_tree(source)
    if tree is None:
        return
    # Local names of functions that a module of gradients gives.
    imported = frozenset(
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] in _MODULES
        for alias in node.names
        if alias.name in _FUNCTIONS
    )
    for node in ast.walk(tree):
        of_optimizers = False  # what has an optimizer is going to train
        if isinstance(node, ast.Attribute):
            of_optimizers = node.attr == "optim" and getattr(node.value, "id", None) == "torch"
        elif isinstance(node, ast.Import):
            of_optimizers = any(alias.name.startswith("torch.optim") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            named = node.module == "torch" and any(alias.name == "optim" for alias in node.names)
            of_optimizers = named or (node.module or "").startswith("torch.optim")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in imported | _CLASSES:
                yield node.lineno, node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, owner = node.func.attr, node.func.value
            last = getattr(owner, "attr", None) or getattr(owner, "id", None)
            if name in _METHODS | _CLASSES or (name in _FUNCTIONS and last in _MODULES):
                yield node.lineno, name
        if of_optimizers and isinstance(node, ast.expr | ast.stmt):
            yield node.lineno, "torch.optim"


def noted_lines(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``noted_lines``; ``read_source`` gives a file's text, None without a copy."""
    rows = (
        {**place, **noted}
        for place in tables["sources"].select("pass", "rank", "file").iter_rows(named=True)
        for noted in statements(read_source(place["file"]) or "")
    )
    return from_rows("noted_lines", rows)


def statements(source: str) -> Iterator[dict[str, Any]]:
    """Rows of ``noted_lines`` without their file."""
    tree = syntax_tree(source)
    functions: dict[str, list[ast.AST]] = defaultdict(list)
    nodes = list(ast.walk(tree)) if tree else []
    for node in nodes:
        if isinstance(node, Function):
            functions[node.name].append(node)

    def row(kind: str, node: ast.expr | ast.stmt, **more: list[str]) -> dict[str, Any]:
        text = ast.get_source_segment(source, node) or ""
        return {"kind": kind, "name": text[:LINE_CHARACTERS], "line": node.lineno, **more}

    for node in nodes:
        if isinstance(node, ast.Assign):
            # ``self.data`` is anything: a data set's, say.
            swapped = (t for t in node.targets if isinstance(t, ast.Attribute) and t.attr == "data")
            if any(last_name(target.value) != "self" for target in swapped):
                yield row("storage", node)
        elif isinstance(node, Function):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and last_name(decorator.func) == "autotune":
                    keys = [each.value for each in decorator.keywords if each.arg == "key"]
                    keys += decorator.args[1:2]  # after the configurations
                    for key in keys[:1]:
                        texts = [n.value for n in ast.walk(key) if isinstance(n, ast.Constant)]
                        yield row("autotune", key, keys=list(map(str, texts))) | {"name": node.name}
        elif isinstance(node, ast.Call):
            called = last_name(node.func)
            if called in _SWAPS and node.args:
                yield row("storage", node)
            elif called == "DataLoader":
                given = {each.arg: each.value for each in node.keywords}
                workers = given.get("num_workers", ast.Constant(0))
                several = not isinstance(workers, ast.Constant) or workers.value
                if several and not given.keys() & {"persistent_workers", None}:
                    yield row("loader", node)
            elif called in ("autocast", "save_on_cpu"):
                yield row(called, node)
            elif called in _CYCLING and "cycle_momentum" not in {k.arg for k in node.keywords}:
                yield row("momentum", node)
            elif called in _HOOKS:
                within = [each for argument in node.args for each in ast.walk(argument)]
                hooks = [
                    *node.args,
                    *(body for each in within for body in functions[last_name(each)]),
                ]
                for each in (inner for hook in hooks for inner in ast.walk(hook)):
                    if isinstance(each, ast.Call) and last_name(each.func) == "step":
                        yield row("hook_step", each)


def cached_calls(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``cached_calls``; ``read_source`` gives a file's text, None without a copy.

    The warning names the file without its folder.
    """
    rows: list[dict[str, Any]] = []
    trees_of: dict[str, dict[str, ast.Module | None]] = {}
    for warned in tables["warnings"].iter_rows(named=True):
        found = CACHED_CALL.search(warned["message"] or "")
        if found is None:
            continue
        if (trees := trees_of.get(warned["pass"])) is None:
            files = tables["sources"].filter(**{"pass": warned["pass"]})["file"].unique().to_list()
            trees = {file: syntax_tree(read_source(file) or "") for file in sorted(files)}
            trees_of[warned["pass"]] = trees
        head = {name: warned[name] for name in ("pass", "rank", "raw_file", "raw_line")}
        line = int(found["line"])
        for file, tree in trees.items():
            if PurePath(file).name != PurePath(found["file"]).name or tree is None:
                continue
            called = {
                last_name(node.func)
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and covers(node, line)
            }
            functions = [
                {"function": node.name, "in_file": other, "first_line": node.lineno}
                | {"last_line": node.end_lineno}
                for other, theirs in trees.items()
                for node in (ast.walk(theirs) if theirs else ())
                if isinstance(node, Function)
                and node.name in called
                # a decorator of functools's is on it
                and any(
                    last_name(getattr(decorator, "func", decorator)) in ("lru_cache", "cache")
                    for decorator in node.decorator_list
                )
            ]
            rows += [{**head, "file": file, "line": line} | one for one in functions or [{}]]
    return from_rows("cached_calls", rows)


def class_sites(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``class_sites``; ``read_source`` gives a file's text, None without a copy.

    A class that the sources make in two places, or outside of functions, may be either of them.
    """
    rows: list[dict[str, Any]] = []
    met = tables["recompiles"].filter(kind="type_id")
    for (name_of_pass,), guards in met.group_by("pass", maintain_order=True):
        texts = (text or "" for row in guards.select("guard", "old", "new").rows() for text in row)
        names = {name for text in texts for name in _CLASS_MET.findall(text)}
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for file in sorted(tables["sources"].filter(**{"pass": name_of_pass})["file"].unique()):
            tree = syntax_tree(read_source(file) or "")
            for node in ast.walk(tree) if tree else ():
                name = node.name if isinstance(node, ast.ClassDef) else None
                if isinstance(node, ast.Call) and last_name(node.func) in _MAKERS and node.args:
                    name = getattr(node.args[0], "value", None)
                if tree and isinstance(node, ast.ClassDef | ast.Call) and name in names:
                    place = {"line": node.lineno, "function": function_at(tree, node.lineno)}
                    found[str(name)].append({"file": file, **place})
        rows += [
            {"pass": name_of_pass, "class_name": name, **places[0]}
            for name, places in sorted(found.items())
            if len(places) == 1 and places[0]["function"]
        ]
    return from_rows("class_sites", rows)

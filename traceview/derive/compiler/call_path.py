"""What lies between the user's call and the generated code: tables ``call_path``, ``guard_costs``.

Every part of a call path is host time with the profiler's own cost in it. ``us_less_profiler``
takes off what the events recorded inside a part cost; the part's own event is left in, so that it
is an upper bound.

The collector times a compile's set of guards, and by what they read the guards that take a good
part of that (table ``guard_timings``); the others are counted. Torch times a whole set once, right
after making it (``profile_guard_manager``), with the CPU's caches cold: several times what a
look-up costs in the profile.

Table ``output_views``: what a call does after its graph to give out views.
A graph gives out no view of its inputs: autograd would not know of what. AOTAutograd has the graph
return them all the same, and makes each again from its base in every call
(``gen_alias_from_base`` in torch/_functorch/_aot_autograd/functional_utils.py): by the operators
that made it, in Python, one output after the other. One of the results of ``unbind`` or ``split``
is made again by making all of them, so that the work grows with the square of their number.

It is seen in the profile: operators that make views, right in the region's mark and after the last
of torch.compile's own marks in it. Code after a graph break may run such operators there too, so
regions with another look-up in them, or whose compile had a graph break, are left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import polars as pl

from traceview.compile_id import process_and_id
from traceview.derive import causes
from traceview.derive.windows import Window
from traceview.tables import Tables, grouped
from traceview.torchtext.fx import ITEM, VIEW_WORDS, Graph
from traceview.torchtext.marks import FORWARD, LOOKUP, PREGRAPH, PROLOGUE, REGION, part_of_call

Row = dict[str, Any]
_EVENTS = [f"aten::{word}" for word in VIEW_WORDS]
_END = pl.col("start_ns") + pl.col("duration_ns")
_WHOLE = (LOOKUP, PREGRAPH, PROLOGUE)
TIMED = "torch timed the set once, when it was made: colder than a look-up"
EVALUATED = "all of them evaluated, median of {}"
APART = "timed with and without them, median of {}"
COUNTED = "counted, not timed"
ASKED = "guards asked for while tracing; torch's tree of them is not in the log"
AMBIENT = "ambient state"

_HEAD = ("pass", "rank", "compile_key", "compile_id", "co_name")
_CODE = ("co_filename", "co_firstlineno", "user_file")
_COMPILE = (*_HEAD, *_CODE, "is_forward", "guard_count", "guard_latency_us")
_NAME = pl.when(pl.col("source_name") != "").then("source_name").otherwise("guard")
#: The local or global that a guard starts from: L['self'], G['torch']; ambient for neither.
_ROOT = r"^[\w(.]*?([LG]\['[^']{1,200}'\])"


def call_path(tables: Tables, found: Sequence[Window]) -> list[Row]:
    """Rows of ``call_path`` for every compiled window with marked steps."""
    guards, entries = _look_ups(tables)
    costs = {
        (row["pass"], row["rank"]): row["event_cost_us"]
        for row in tables["step_counts"].iter_rows(named=True)
        if row["stance"] == "compiled"
    }
    cpp = (tables["generated_kernels"]["category"] == "cpp").any()
    rows: list[Row] = []
    for window in found:
        if window.stance != "compiled" or not window.steps:
            continue
        shown = window.ops["category"].str.starts_with("generated_").any()
        hidden = not window.on_device and bool(cpp) and not shown
        cost = costs.get((window.pass_name, window.rank))
        for part in _parts(window, hidden=hidden).iter_rows(named=True):
            calls, region = part["calls"] or 1, part["region"]
            micros = part["ns"] / 1e3 / calls
            less = None if cost is None else micros - cost * part["inner"] / calls
            count = entered = None
            if part["part"] == "cache_lookup":
                at, compile_id = (window.pass_name, window.rank), part["compile_id"]
                count = guards.get((*at, compile_id))
                entered = entries.get((*at, region, compile_id))
            row = {
                "pass": window.pass_name,
                "rank": window.rank,
                "region_id": int(region) if region and region.isdigit() else None,
                "compile_id": part["compile_id"],
                "part": part["part"],
                "calls": calls / window.steps,
                "us_per_call": micros,
                "ms": part["ns"] / 1e6 / window.steps,
                "us_less_profiler": less if less is not None and less >= 0 else None,
                "guards": count,
                "ns_per_guard": micros * 1e3 / count if count else None,
                "entries": entered,
            }
            rows.append(row)
    return rows


def _parts(window: Window, *, hidden: bool) -> pl.DataFrame:
    """Host ns and calls by region, compile id and part; ``inner`` are events inside."""
    steps = window.ops.filter(pl.col("step").is_not_null())
    children = steps.group_by("parent_id").agg(pl.len().alias("inner"))
    name = pl.col("name")
    overhead = steps.filter(pl.col("category") == "overhead")
    known = {mark: part_of_call(mark) or "runtime_wrappers" for mark in overhead["name"].unique()}
    part = name.replace_strict(known, default=None, return_dtype=pl.String)
    # A look-up belongs to the region it led to: the next mark on its thread, at its depth.
    following = [pl.col(column).shift(-1).over("tid") for column in ("name", "depth", "compile_id")]
    led = following[0].str.starts_with(REGION) & (following[1] == pl.col("depth"))
    entered = pl.when(name != LOOKUP).then("compile_id").when(led).then(following[2])
    parts = (
        overhead.sort("tid", "start_ns")
        .with_columns(part=part, compile_id=entered)
        .join(children, left_on="op_id", right_on="parent_id", how="left", maintain_order="left")
    )
    if hidden:  # the C++ kernels' time is part of the wrapper's here
        parts = parts.filter(pl.col("part") != "generated_wrapper")
    whole = name.is_in(_WHOLE)
    functions = name.str.starts_with(FORWARD)  # a training graph's wrappers: one call
    return parts.group_by("region", "compile_id", "part", maintain_order=True).agg(
        pl.when(whole).then(pl.col("duration_ns")).otherwise(pl.col("self_ns")).sum().alias("ns"),
        pl.when(functions.any()).then(functions.sum()).otherwise(pl.len()).alias("calls"),
        pl.when(whole).then(0).otherwise(pl.col("inner").fill_null(0)).sum().alias("inner"),
    )


def _look_ups(tables: Tables) -> tuple[dict[Any, int], dict[Any, int]]:
    """What a look-up goes through: guards and code variants.

    (pass, rank, compile id) → guards in the tree of the last compile of that id; (pass, rank,
    region, compile id) → code variants of the frame. A look-up that found nothing has no id and
    names no frame: it is given only where the region has no more than one.
    """
    in_tree = dict(tables["guards"].group_by("compile_key").len().iter_rows())
    guards: dict[Any, int] = {}
    variants: dict[Any, int] = {}
    compiles: dict[str, Row] = {}
    for row in tables["compiles"].sort("started_us", nulls_last=False).iter_rows(named=True):
        compiles[row["compile_key"]] = row
        if row["is_forward"] is False:
            continue
        if count := in_tree.get(row["compile_key"]) or row["guard_count"]:
            guards[row["pass"], row["rank"], row["compile_id"]] = count
        if row["outcome"] == "ok":
            frame = _frame(row)
            variants[frame] = variants.get(frame, 0) + 1
    entries: dict[Any, int] = {}
    in_region: dict[Any, set[Any]] = {}
    for row in tables["compile_regions"].iter_rows(named=True):
        compile_ = compiles[row["compile_key"]]
        frame = _frame(compile_)
        if frame in variants:
            pass_name, rank, region = row["pass"], compile_["rank"], str(row["region_id"])
            entries[pass_name, rank, region, compile_["compile_id"]] = variants[frame]
            in_region.setdefault((pass_name, rank, region), set()).add(frame)
    for (pass_name, rank, region), mine in in_region.items():
        if len(mine) == 1:
            entries[pass_name, rank, region, None] = variants[next(iter(mine))]
    return guards, entries


def _frame(compile_: Row) -> tuple[Any, ...]:
    return compile_["pass"], compile_["pid"], compile_["epoch"], compile_["frame_id"]


def guard_costs(tables: Tables) -> list[Row]:
    """Rows of ``guard_costs``: per compile the set, then its kinds, then what they read."""
    guards = tables["guards"].with_columns(root=_NAME.str.extract(_ROOT).fill_null(AMBIENT))
    kinds = _most_first(guards, ("compile_key",), "kind")
    sources = _most_first(guards, ("compile_key",), "root")
    places = _most_first(guards, ("compile_key", "root"), "file", "line")
    timings = _timings(tables)
    rows: list[Row] = []
    for compile_ in tables["compiles"].select(_COMPILE).iter_rows(named=True):
        key = compile_["compile_key"]
        counted = sum(row["guards"] for row in kinds[key])
        if compile_["is_forward"] is False or not (counted or compile_["guard_count"]):
            continue
        timed = timings[key]
        # The set: evaluated by the collector, else timed by torch, else only counted.
        us, how = compile_["guard_latency_us"], COUNTED if counted else ASKED
        if timed:
            us, how = timed[0]["us"], EVALUATED.format(timed[0]["evaluations"])
        elif us is not None:
            how = TIMED
        head = {name: compile_[name] for name in _HEAD}
        whole = {
            "file": compile_["co_filename"],
            "line": compile_["co_firstlineno"],
            "guards": counted or compile_["guard_count"],
        }
        rows.append({**head, **whole, "us": us, "how": how})
        parts = [{"kind": row["kind"], "guards": row["guards"]} for row in kinds[key]]
        branches = _branches(compile_, timed[1:], guards)
        parts += branches
        timed_of = Counter[str]()
        for branch in branches:
            root = re.match(_ROOT, branch["source_name"])
            timed_of[root[1] if root else AMBIENT] += branch["guards"]
        for source in sources[key]:
            # What starts from one local or global and is in none of its branches that were timed.
            name, guard = source["root"], source["guard"]
            if (left := source["guards"] - timed_of[name]) > 0:
                if source["guards"] > 1:
                    guard = _starting(name, whole=left == source["guards"])
                found = places[key, name]
                parts.append(_of_source(compile_, name, left, found) | {"guard": guard})
        rows += [{**head, "how": COUNTED, **row} for row in parts]
    return rows


def _timings(tables: Tables) -> dict[str, list[Row]]:
    """Compile key → its rows of ``guard_timings``, the whole set first.

    None where torch, after a reset, gave the same compile id to another compile.
    """
    found: dict[str, list[Row]] = defaultdict(list)
    timings = tables["guard_timings"]
    if timings.is_empty():
        return found
    known = process_and_id(tables["compiles"]["compile_key"].unique())
    keys = {mine: key for key, mine in known.items()}
    for row in timings.iter_rows(named=True):
        key = keys.get((row["pid"], row["compile_id"]))
        if key is None:
            continue
        if row["source_name"] is None:
            found[key] = [row]
        elif found[key]:
            found[key].append(row)
    return found


def _most_first(guards: pl.DataFrame, by: tuple[str, ...], *columns: str) -> dict[Any, list[Row]]:
    """``by`` → the different values of ``columns``: how many guards have them, and one of those."""
    groups = guards.group_by(*by, *columns, maintain_order=True).agg(
        pl.first("guard"), guards=pl.len()
    )
    ordered = groups.sort("guards", descending=True, maintain_order=True)
    return grouped(ordered.iter_rows(named=True), *by)


def _branches(compile_: Row, timed: list[Row], guards: pl.DataFrame) -> list[Row]:
    """What was timed by what it reads, with the line of most of these guards."""
    mine = guards.filter(compile_key=compile_["compile_key"]) if timed else guards.clear()
    rows = []
    for row in timed:
        name = row["source_name"]
        below = mine.filter(pl.col("source_name").str.contains(name, literal=True))
        places = below.group_by("file", "line", maintain_order=True).agg(guards=pl.len())
        inner = any(name in other["source_name"] for other in timed if other is not row)
        described = {
            "guard": _starting(name, whole=not inner),
            "us": row["us"],
            "how": APART.format(row["evaluations"]),
        }
        rows.append(_of_source(compile_, name, row["guards"] or 0, places.to_dicts()) | described)
    return rows


def _starting(name: str, *, whole: bool) -> str:
    return f"{'all' if whole else 'others'} that start from {name}"


def _of_source(compile_: Row, name: str, guards: int, places: list[Row]) -> Row:
    """What reads one source, with the line of most of these guards."""
    known = [file for file in (compile_["user_file"], compile_["co_filename"]) if file]
    counts = Counter[tuple[str, int]]()
    for row in places:
        # Torch shortens file names: the user's line is in the one that is known and ends so.
        shortened, number = row["file"], row["line"]
        whole = next((file for file in known if shortened and file.endswith(shortened)), None)
        if whole is not None and number is not None:
            counts[whole, number] += row["guards"]
    file, line = counts.most_common(1)[0][0] if counts else (None, None)
    return {"source_name": name, "guards": guards, "file": file, "line": line}


def output_views(
    tables: Tables, found: Sequence[Window], parse: Callable[[str], Graph]
) -> Iterator[Row]:
    """One row for each compiled graph whose calls make views again, and each profiled rank."""
    broken = set(tables["graph_breaks"]["compile_key"])
    costs = {
        (row["pass"], row["rank"]): row["event_cost_us"] or 0.0
        for row in tables["step_counts"].filter(stance="compiled").iter_rows(named=True)
    }
    for window in found:
        if window.stance != "compiled" or not window.steps:
            continue
        # The last that has this id: a reset begins again to count.
        compiles = window.own(tables["compiles"]).filter(pl.col("is_forward").fill_null(True))
        keys = dict(compiles.sort("started_us").select("compile_id", "compile_key").iter_rows())
        cost = costs.get((window.pass_name, window.rank), 0.0)
        # Where the profiled step was a slower one than those that were timed, each part was.
        account = window.own(tables["accounting"])
        named = ~pl.col("category").is_in(causes.UNNAMED)
        timed, parts = float(account["ms"].sum()), float(account.filter(named)["ms"].sum())
        speed = min(1.0, timed / parts) if parts > 0.0 else 1.0
        for made in _made_again(window).iter_rows(named=True):
            key = keys.get(made["compile_id"])
            graphs = tables["graphs"].filter(kind="dynamo_output", compile_key=key)
            if key in broken or graphs.is_empty():
                continue
            graph = parse(graphs["text"][-1])
            views = [graph.nodes[name] for name in sorted(graph.outputs) if graph.gives_view(name)]
            lines = Counter(node.user_line for node in views if node.user_line)
            micros = (made["ns"] / 1e3 - cost * made["inner"]) * speed
            if not views or micros <= 0.0:
                continue
            region = made["region"]
            yield {
                "pass": window.pass_name,
                "rank": window.rank,
                "region_id": int(region) if region and region.isdigit() else None,
                "compile_key": key,
                "compile_id": made["compile_id"],
                "outputs": len(graph.outputs),
                "views": len(views),
                "computes": any(
                    node.target and node.op != ITEM and node.word not in VIEW_WORDS
                    for node in graph.assigned
                ),
                "calls": made["calls"] / window.steps,
                "operators": made["inner"] / made["calls"],
                "us_per_call": micros / made["calls"],
                "ms": micros / 1e3 / window.steps,
                "user_line": lines.most_common(1)[0][0] if lines else None,
            }


def _made_again(window: Window) -> pl.DataFrame:
    """By region and compile id: ``ns`` after the graph, and ``inner``, the events of views in it.

    In all ``calls`` of the window. Regions whose last part makes no views are left out.
    """
    steps = window.ops.filter(pl.col("step").is_not_null())
    regions = steps.filter(pl.col("name").str.starts_with(REGION)).select(
        "op_id", "region", "compile_id", end=_END
    )
    inside = steps.select("parent_id", "name", "category", "start_ns", until=_END).join(
        regions, left_on="parent_id", right_on="op_id"
    )
    own = pl.col("category") == "overhead"
    after = pl.col("until").filter(own).max().over("parent_id")
    views = pl.col("name").is_in(_EVENTS) & (pl.col("start_ns") >= after)
    calls = inside.group_by("parent_id", "region", "compile_id", maintain_order=True).agg(
        ns=pl.col("end").first() - pl.col("until").filter(own).max(),
        views=views.sum(),
        others=(pl.col("name") == LOOKUP).any(),
    )
    found = calls.filter((pl.col("views") > 0) & ~pl.col("others"))
    events = steps.filter(pl.col("graph_key").is_null() & pl.col("name").is_in(_EVENTS))
    by = ["region", "compile_id"]
    inner = events.group_by(by).agg(inner=pl.len())
    summed = found.group_by(by, maintain_order=True).agg(pl.col("ns").sum(), calls=pl.len())
    return summed.join(inner, on=by, how="left", nulls_equal=True, maintain_order="left")

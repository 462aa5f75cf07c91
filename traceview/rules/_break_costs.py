"""What graph breaks cost a step, as far as its profile shows it.

Seen are Python between the compiled regions and entering one region more for each break; on a GPU
what the device idles meanwhile, and while a value is read. Fusion lost across the cut is not seen.
"""

from __future__ import annotations

from collections import defaultdict

from traceview.derive.facts.outside import operators_ms
from traceview.rules import _breaks, _costs, _strict
from traceview.rules._break_entries import shares
from traceview.rules._rows import Row, first, first_rank, rows
from traceview.rules.finding import Confidence, Cost, Finding, Severity, Snippet
from traceview.tables import Tables
from traceview.words.numbers import milliseconds

#: Python at breaks: on a CPU its time, on a GPU what the device idles meanwhile.
_GAPS = ("graph_break", "idle_graph_break")
#: Entering compiled code, which each break makes happen once more.
_ENTRIES = (
    "overhead_cache_lookup", "overhead_pregraph_bytecode", "overhead_runtime_wrappers",
    "overhead_generated_wrapper", "overhead_compiled_region", "idle_guards", "idle_call_overhead",
)  # fmt: skip
_WAIT = "idle_sync"
#: A figure is measured where what fusion could add to it is at most this part of it, and the
#: profiler made the step longer by at most this part: of short steps it is most of what is seen.
UNKNOWN_SHARE = 0.25

_ENDS = "Dynamo cannot trace this, and fullgraph=True makes an error of it: the script ends here."
_CAUGHT = (
    "Dynamo cannot trace this, and fullgraph=True makes an error of it. The script catches that: "
    "what it does then runs in eager, and nothing is kept of a compile that failed, so each call "
    "tries again."
)

Line = tuple[str, int] | None


class Breaks:
    """The breaks of a compiled step: what all of them cost, and what each one does."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._sites = tuple(_breaks.sites(tables))
        self._shares = dict(zip(map(_line, self._sites), shares(tables, self._sites), strict=True))
        self._counts: Row = first(tables, "step_counts", stance="compiled") or {}
        self._accounts = first_rank(rows(tables, "accounting", stance="compiled"))
        self._at: dict[Line, float] = defaultdict(float)
        self._waits: dict[Line, float] = defaultdict(float)
        for row in first_rank(rows(tables, "account_details", stance="compiled")):
            line = (row["file"], row["line"]) if row["file"] and row["line"] else None
            kept = self._at if row["category"] in _GAPS else self._waits
            if row["category"] in (*_GAPS, _WAIT):
                kept[line] += row["ms"] or 0.0

    @property
    def gap_ms(self) -> float | None:
        """Python between the compiled regions of a step; 0 where nothing ran behind a break.

        Of the step as timed; without an accounting of it, as profiled and scaled to it.
        """
        gap: float | None = self._counts.get("gap_ms")
        if gap and self._accounts:
            return self._sum(_GAPS)
        profiled, timed = self._counts.get("step_ms"), _costs.step_ms(self._tables, "compiled")
        scale = min(1.0, timed / profiled) if profiled and timed else 1.0
        return None if gap is None else gap * scale

    @property
    def cut_ms(self) -> float | None:
        """All that is seen of the breaks of a step: ``gap_ms``, and entering more regions."""
        gap, regions = self.gap_ms, self._counts.get("compiled_regions")
        if gap is None:
            return self._unmarked_ms()
        if not (self._counts.get("gap_ms") and self._counts.get("gaps") and regions):
            return gap
        extra: float = min(1.0, self._counts["gaps"] / regions)
        return gap + self._sum(_ENTRIES) * extra

    @property
    def _disturbed(self) -> bool:
        """Whether the profiler's own cost, which is taken out again, is much of the step."""
        profiled, timed = self._counts.get("step_ms"), _costs.step_ms(self._tables, "compiled")
        return bool(profiled and timed and profiled > (1 + UNKNOWN_SHARE) * timed)

    def _unmarked_ms(self) -> float | None:
        """``cut_ms`` where no mark tells Python at a break from entering (torch below 2.9)."""
        regions = self._counts.get("compiled_regions")
        costs = first_rank(rows(self._tables, "region_costs"))
        calls = sum(row["calls_per_step"] or 0.0 for row in costs)
        if not (regions and calls and self._accounts):
            return None
        extra: float = max(0.0, 1.0 - calls / regions)
        return self._sum(_ENTRIES) * extra

    def cost(self, site: _breaks.Site | None = None) -> tuple[Cost, Confidence]:
        """What is seen of the break at ``site``; without one, of a break like any other."""
        total = self.cut_ms
        if total is None:
            return Cost(about="host time between compiled regions: not measured"), "heuristic"
        if self._counts["gap_ms"] == 0:
            return self._behind(site)
        places = len(self._sites) or 1
        unplaced = max(0.0, total - sum(self._at[_line(other)] for other in self._sites))
        share = self._shares.get(_line(site), 1 / places)
        cost = min(total, self._own(site) + unplaced * share) + self._waited(site)
        fusible = self._fusible_ms()
        apart = self._counts["gap_ms"] is not None
        about, eager = _about(places, fusible, apart), self._given_up_ms(site) if cost else None
        if eager:
            about = f"{about}; with the operators that the function runs in eager"
            return Cost(ms_per_step=cost + eager, about=about), "derived"
        sure = apart and places == 1 and fusible is not None and fusible <= UNKNOWN_SHARE * cost
        known: Confidence = "measured" if sure and not self._disturbed else "derived"
        return Cost(ms_per_step=cost, about=about), known

    def _given_up_ms(self, site: _breaks.Site | None) -> float | None:
        """What a function that was given up at ``site`` runs on a device in eager.

        What is seen of a break there is idle time; on a CPU its operators are in it already.
        """
        if site is None or not site.skipped:
            return None
        on_device = any(row["clock"] == "device" for row in self._accounts)
        return left_in_eager(self._tables, site) if on_device else None

    def _behind(self, site: _breaks.Site | None) -> tuple[Cost, Confidence]:
        """Where nothing runs compiled behind a break: what it leaves in eager of its function."""
        ms = left_in_eager(self._tables, site) if site is not None else None
        if ms is None:
            about = "nothing more ran compiled after it in the profiled steps, so no gap was seen"
            return Cost(about=about), "heuristic"
        about = "operators of this function that it leaves in eager; compiling saves a part of them"
        return Cost(ms_per_step=ms, about=about), "derived"

    def finding(
        self, site: _breaks.Site, *, code: str, rule: str, title: str, explanation: str,
        what_to_do: str, snippet: Snippet | None,
    ) -> Finding:  # fmt: skip
        """What a rule says of the break at ``site``, with all that is known of that place."""
        cost, confidence = self.cost(site)
        if site.strict:
            ended = _strict.ended(self._tables)
            cost, confidence = _strict.cost(self._tables, site.rows), "measured"
            explanation = _ENDS if ended else _CAUGHT
        return Finding(
            code=code,
            rule=rule,
            severity="error" if site.strict and ended else severity(self._tables, cost),
            title=title,
            explanation=explanation,
            cost=cost,
            confidence=confidence,
            location=site.place,
            inside=site.inside,
            about=site.about,
            evidence=site.evidence(),
            what_to_do=what_to_do,
            snippet=snippet,
        )

    def _own(self, site: _breaks.Site | None) -> float:
        return self._at[_line(site)] if site is not None and site.place else 0.0

    def _waited(self, site: _breaks.Site | None) -> float:
        """What the device idles because ``site`` reads a value.

        In a compiled function the profile shows no line of a wait: such are shared by the readers.
        """
        if site is None or not _reads(site):
            return 0.0
        readers = sum(1 for other in self._sites if _reads(other)) or 1
        own = self._waits[_line(site)] if site.place else 0.0
        return own + self._waits[None] / readers

    def _fusible_ms(self) -> float | None:
        """Time of a step in kernels that Inductor wrote: no fusion can save more."""
        busy = [row for row in self._accounts if row["kind"] == "busy"]
        made = [row["ms"] or 0.0 for row in busy if row["category"].startswith("generated_")]
        return sum(made) if busy else None

    def _sum(self, categories: tuple[str, ...]) -> float:
        found = (row["ms"] or 0.0 for row in self._accounts if row["category"] in categories)
        return float(sum(found))


def left_in_eager(tables: Tables, site: _breaks.Site) -> float | None:
    """Operators of a step in eager in the function that broke; None: none, or its end unknown.

    The end is known of what torch.compile was given.
    """
    ends = {
        (row["target_file"], row["target_line"]): row["target_last_line"]
        for row in first_rank(rows(tables, "regions"))
    }
    keys = {row["compile_key"] for row in site.rows}
    codes = {
        (row["co_filename"], row["co_firstlineno"])
        for row in rows(tables, "compiles")
        if row["compile_key"] in keys
    }
    known = [(file, line, end) for file, line in codes if (end := ends.get((file, line)))]
    return sum(operators_ms(tables, *each) for each in known) or None


def severity(tables: Tables, cost: Cost) -> Severity:
    """As ``_costs.severity``; info too where nothing ran compiled behind it and nothing is lost.

    Then there is no graph that it could have been fused with.
    """
    counts = first(tables, "step_counts", stance="compiled")
    alone = counts is not None and counts["gap_ms"] == 0 and cost.ms_per_step is None
    if alone and _costs.outcome(tables) in ("helped", "neutral"):
        return "info"
    return _costs.severity(tables, cost.ms_per_step)


def _line(site: _breaks.Site | None) -> Line:
    return (site.place.file, site.place.line) if site is not None and site.place else None


def _reads(site: _breaks.Site) -> bool:
    return any(_breaks.is_item(row) or _breaks.is_data_dependent(row) for row in site.rows)


def _about(places: int, fusible: float | None, apart: bool) -> str:
    about = "Python at the break, and entering compiled code once more"
    if not apart:
        about += " (this torch's profile does not tell them apart)"
    if places > 1:
        about += f"; {places} places share what no line shows, by the graphs entered behind each"
    if fusible:
        about += f"; what fusing across it would save comes on top, at most {milliseconds(fusible)}"
    return about

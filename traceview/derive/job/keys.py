"""Look-ups in Inductor's graph cache, and table ``cache_key_differences``: why one was a miss.

Ranks that run one program look the same graphs up. Where one of them misses what others find, or
asks by another key, the components of the two keys say why; of the same key, the cache itself was
another one. A rank that only came first, and whose code the others then found, is left out.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter

import msgspec
import polars as pl

from traceview.derive.job.attempts import Attempt, Row, Span, ranges, total, with_member
from traceview.tables import Tables, grouped

CACHE = "fx_graph"
_OUTCOMES = {"hit": "hit", "miss": "miss", "guard_miss": "miss"}
#: Keys of one graph that are looked into, the commonest first; graphs in all.
_KEYS, _PAIRS = 6, 400
#: Settings named for one pair of keys: another torch changes hundreds.
_SETTINGS = 5
_DEVICE = re.compile(r"index=\d+|\b(cuda|xpu|hpu):\d+")
_NUMBER = re.compile(r"\d+")
_GRAPH = "gm"
_INPUT = re.compile(r"example_inputs\[")
_VERSIONS = frozenset({"torch_version", "system_info[hash]"})
#: What a graph decides, and no setting.
_OF_GRAPH = re.compile(
    r"gm|example_inputs\[|fx_kwargs\[(static_input_idxs|is_backward|is_inference)\]"
)
#: Kinds of difference that are of the program, not of its settings.
_DIVERGED = frozenset({"graph", "inputs"})


class LookUp(msgspec.Struct, frozen=True):
    """One look-up: ``nth`` of its compile, and where in the log it stands.

    ``seconds`` and ``inductor_s`` are of the whole compile, a backward that came later included.
    """

    pass_name: str
    member: str
    span: Span
    seconds: float | None
    inductor_s: float
    ended_us: float | None
    nth: int
    outcome: str
    key: str | None
    raw_file: str | None
    raw_line: int | None

    @property
    def place(self) -> tuple[object, ...]:
        """The same on every rank that runs the same program."""
        return (*self.span.code, self.span.index, self.nth)


def ended(tables: Tables, job: Attempt, outcomes: Iterable[str]) -> pl.DataFrame:
    """Rows of ``cache_events``, with their ``member``: look-ups of a job that ended so."""
    return with_member(
        tables["cache_events"].filter(
            pl.col("event").is_in(list(outcomes)), **{"pass": job.name, "cache": CACHE}
        )
    )


def look_ups(tables: Tables, job: Attempt) -> Iterator[LookUp]:
    """Every look-up that hit or missed, of a compile that is known."""
    spans = grouped(job.spans, by=attrgetter("key"))
    seen: dict[tuple[str, str], int] = defaultdict(int)
    # A look-up whose record is cut off has no key and can't be compared.
    events = ended(tables, job, _OUTCOMES).drop_nulls("key")
    ordered = events.sort("raw_file", "raw_line")
    for row in ordered.iter_rows(named=True):
        at = (row["member"], row["compile_key"])
        own = spans.get(at)
        if own:
            nth = seen[at]
            seen[at] += 1
            yield LookUp(
                pass_name=job.name,
                member=row["member"],
                span=own[0],
                seconds=total(own),
                inductor_s=sum(s.phases["inductor_s"] + s.phases["codegen_s"] for s in own),
                ended_us=max((s.ended_us for s in own if s.ended_us is not None), default=None),
                nth=nth,
                outcome=_OUTCOMES[row["event"]],
                key=row["key"],
                raw_file=row["raw_file"],
                raw_line=row["raw_line"],
            )


class Components:
    """Components of cache keys; the table keeps only what changed from one look-up to the next."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._made: dict[tuple[object, ...], dict[str, Row]] = {}

    @cached_property
    def _files(self) -> dict[tuple[object, ...], pl.DataFrame]:
        """(pass, log) → its components; made where keys differ at all."""
        known = self._tables["cache_components"].filter(pl.col("cache") == CACHE)
        known = known.select("pass", "raw_file", "pid", "raw_line", "name", "digest", "value")
        return known.partition_by("pass", "raw_file", as_dict=True)

    def of(self, look_up: LookUp) -> Mapping[str, Row]:
        """Name → digest and value; empty where they were not recorded."""
        at = (look_up.pass_name, look_up.raw_file, look_up.span.row["pid"], look_up.raw_line)
        if at not in self._made:
            self._made[at] = self._read(look_up)
        return self._made[at]

    def _read(self, look_up: LookUp) -> dict[str, Row]:
        frame = self._files.get((look_up.pass_name, look_up.raw_file))
        if frame is None or look_up.raw_line is None:
            return {}
        pid = pl.lit(look_up.span.row["pid"], dtype=pl.Int64)
        mine = frame.filter(pl.col("raw_line") <= look_up.raw_line, pl.col("pid").eq_missing(pid))
        # A process shows all components at its first look-up; that must be there.
        last = mine.sort("raw_line").unique("name", keep="last").drop_nulls("digest")
        return {row["name"]: row for row in last.iter_rows(named=True)}


Group = Sequence[LookUp]


class _Side(msgspec.Struct):
    """One side of a difference while look-ups are added to it."""

    pass_name: str
    value: str | None
    members: set[str] = set()
    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    functions: set[str] = set()
    seconds: dict[tuple[str, str], float] = {}

    def add(self, group: Group, seconds: Mapping[tuple[str, str], float]) -> None:
        self.members |= {look_up.member for look_up in group}
        self.outcomes.update(look_up.outcome for look_up in group)
        self.functions |= {_function(look_up) for look_up in group}
        self.seconds |= seconds


class _Component(msgspec.Struct, frozen=True):
    """What differs: torch's name, its kind, and both values."""

    name: str | None
    kind: str
    values: tuple[str | None, str | None] = (None, None)


_FOLDER = _Component(None, "folder")


class _Keys(msgspec.Struct, frozen=True):
    """The components of two keys by name."""

    left: Mapping[str, Row]
    right: Mapping[str, Row]

    def component(self, name: str, kind: str) -> _Component:
        return _Component(name, kind, (_value(self.left, name), _value(self.right, name)))

    def differ(self, name: str) -> bool:
        """Whether it differs by more than the index of a device."""
        one, other = self.left.get(name), self.right.get(name)
        if one is None or other is None:
            return True
        if one["digest"] == other["digest"]:
            return False
        texts = [_DEVICE.sub("", row["value"] or "") for row in (one, other)]
        return texts[0] != texts[1] or (one["value"] == other["value"] and not self.on_devices())

    def on_devices(self) -> bool:
        """Whether inputs lie on devices of different index: their digests then differ anyway."""
        for name in self.left.keys() & self.right.keys():
            one, other = self.left[name]["value"] or "", self.right[name]["value"] or ""
            if one != other and _DEVICE.sub("", one) == _DEVICE.sub("", other):
                return True
        return False

    def graph(self, names: Sequence[str]) -> _Component:
        """What says most of graphs that differ: an input where only sizes do, else the graph."""
        shapes = {_NUMBER.sub("0", _value(side, _GRAPH) or "") for side in (self.left, self.right)}
        inputs = [name for name in names if _INPUT.match(name)]
        if inputs and (_GRAPH not in names or len(shapes) == 1):
            return self.component(inputs[0], "inputs")
        return self.component(_GRAPH if _GRAPH in names else names[0], "graph")


class Differences:
    """All differences, those of the same component and values put together."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._found: dict[tuple[object, ...], tuple[str | None, tuple[_Side, _Side]]] = {}
        self._pairs = 0

    def between_ranks(self, look_ups: Iterable[LookUp]) -> None:
        """Compare the ranks of one attempt."""
        places: dict[tuple[object, ...], list[LookUp]] = defaultdict(list)
        for look_up in look_ups:
            places[look_up.place].append(look_up)
        for group in places.values():
            by_key: dict[str | None, list[LookUp]] = defaultdict(list)
            for look_up in group:
                by_key[look_up.key].append(look_up)
            usual = max(by_key.values(), key=lambda found: (_hits(found) > 0, len(found)))
            self._same_key(usual)
            others = sorted((f for f in by_key.values() if f is not usual), key=len, reverse=True)
            for other in others[:_KEYS]:
                self._compare(usual, other, "ranks")

    def between_attempts(self, before: Iterable[LookUp], after: Iterable[LookUp]) -> None:
        """Compare two starts of a job: what the second missed although the first had made it."""
        made = {(*found.place, found.member): found for found in before if found.outcome == "miss"}
        pairs: dict[tuple[object, ...], list[tuple[LookUp, LookUp]]] = defaultdict(list)
        for look_up in after:
            old = made.get((*look_up.place, look_up.member))
            if old is not None and look_up.outcome == "miss":
                at = (*look_up.place, old.key, look_up.key)
                pairs[at].append((old, look_up))
        for found in pairs.values():
            olds, news = [old for old, _ in found], [new for _, new in found]
            self._compare(olds, news, "attempts")

    def rows(self, pass_name: str) -> Iterator[Row]:
        """Rows of the table, what cost most first."""
        found = [
            (sum(sides[1].seconds.values()) * 1e6 + len(sides[1].members), at, name, sides)
            for at, (name, sides) in self._found.items()
        ]
        found.sort(key=lambda item: -item[0])
        for number, (_, (between, kind, *_), name, sides) in enumerate(found):
            for side in sides:
                outcomes = side.outcomes
                yield {
                    "pass": pass_name,
                    "difference": number,
                    "cache": CACHE,
                    "between": between,
                    "component": name,
                    "kind": kind,
                    "side_pass": side.pass_name,
                    "ranks": ranges(side.members),
                    "rank_count": len(side.members),
                    "outcome": "both" if len(outcomes) > 1 else next(iter(outcomes), "miss"),
                    "value": side.value,
                    "functions": sorted(side.functions),
                    "compiles": sum(outcomes.values()),
                    "seconds": sum(side.seconds.values()) if side.seconds else None,
                }

    def _same_key(self, group: Group) -> None:
        hits = [found for found in group if found.outcome == "hit"]
        missed: list[LookUp] = []
        for look_up in group:
            # Where most of those who hit ended after it had made the code, they found its own.
            ended = look_up.ended_us
            later = 0 if ended is None else sum((hit.ended_us or 0.0) > ended for hit in hits)
            if look_up.outcome == "miss" and 2 * later <= len(hits):
                missed.append(look_up)
        if hits and missed:
            self._add("ranks", _FOLDER, (hits, missed), _beyond(hits, missed))

    def _compare(self, usual: Group, other: Group, between: str) -> None:
        if self._pairs >= _PAIRS:
            return
        self._pairs += 1
        if between == "ranks":
            seconds = _beyond(usual, other)
        else:  # a hit would have saved the seconds in Inductor
            seconds = {
                found.span.key: found.inductor_s for found in other if found.seconds is not None
            }
        mixed = _hits(usual) == len(usual) and _hits(other) == 0
        for component in self._differing(usual[0], other[0], mixed=mixed):
            # Another graph has another key: only where it missed is that the cache's affair.
            if mixed or between == "attempts" or component.kind not in _DIVERGED:
                self._add(between, component, (usual, other), seconds)

    def _differing(self, one: LookUp, other: LookUp, *, mixed: bool) -> Iterator[_Component]:
        if one.key == other.key:
            yield _FOLDER
            return
        keys = _Keys(self._components.of(one), self._components.of(other))
        if not keys.left or not keys.right:
            yield _Component(None, "unknown", (one.key, other.key))
            return
        names = list(filter(keys.differ, dict.fromkeys((*keys.left, *keys.right))))
        graph = [name for name in names if _OF_GRAPH.match(name)]
        if graph:
            yield keys.graph(graph)
        settings = [name for name in names if name not in graph]
        for name in sorted(settings, key=lambda name: (name not in _VERSIONS, name))[:_SETTINGS]:
            yield keys.component(name, "versions" if name in _VERSIONS else "settings")
        if not names and mixed:  # the device's index is part of the key
            yield _FOLDER

    def _add(
        self,
        between: str,
        component: _Component,
        groups: tuple[Group, Group],
        seconds: Mapping[tuple[str, str], float],
    ) -> None:
        passes = tuple(group[0].pass_name for group in groups)
        at: tuple[object, ...] = (between, component.kind, component.name, component.values, passes)
        if component.kind in _DIVERGED:  # sizes are many: one row a function
            at = (between, component.kind, _function(groups[1][0]), passes)
        one, other = map(_Side, passes, component.values)
        _, sides = self._found.setdefault(at, (component.name, (one, other)))
        sides[0].add(groups[0], {})
        sides[1].add(groups[1], seconds)


def _value(side: Mapping[str, Row], name: str) -> str | None:
    """The value as text; None where it is not there or no text (a hash of torch's sources)."""
    text = side[name]["value"] if name in side else None
    strange = sum(not (char.isprintable() or char.isspace()) or char == "�" for char in text or "")
    return None if text is None or strange * 10 > len(text) else text


def _hits(group: Group) -> int:
    return sum(look_up.outcome == "hit" for look_up in group)


def _beyond(usual: Group, other: Group) -> dict[tuple[str, str], float]:
    """Compile → seconds of those in ``other`` that missed, beyond the median of what hit."""
    found = [look_up.seconds for look_up in usual if look_up.outcome == "hit"]
    quick = [seconds for seconds in found if seconds is not None]
    if not quick:
        return {}
    usually = statistics.median(quick)
    return {
        look_up.span.key: max(0.0, look_up.seconds - usually)
        for look_up in other
        if look_up.outcome == "miss" and look_up.seconds is not None
    }


def _function(look_up: LookUp) -> str:
    _, file, line = look_up.span.code
    return f"{file}:{line}"

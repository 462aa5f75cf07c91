"""Hold code under test to what torch.compile does with it: compiles, graph breaks, recompiles.

    with assert_compiles_once():
        for batch in batches:
            step(batch)

What compiles is read from torch's structured log of the block, as a post-mortem reads it, and what
fails is explained by the rules. Each block starts with ``torch.compiler.reset()``: what an earlier
test has compiled would not be seen. torch's own logging settings stay as they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import chain
from types import TracebackType

from traceview.compiles import breaks_of, logged, recompiles_of
from traceview.derive import derive
from traceview.inputs import find
from traceview.parse.damage import Damage
from traceview.parse.merge import gathered
from traceview.reading.mapping import Log, parse
from traceview.rules import Finding, catalogue, run_rules
from traceview.rules.finding import SEVERITIES
from traceview.tables import Tables
from traceview.words import numbers

__all__ = ["Compiles", "assert_compiles_once", "assert_no_graph_breaks", "compile_budget"]

#: Rules on graph breaks and on recompiles.
_ABOUT = ("TV1", "TV2")


class Compiles:
    """What torch.compile did in a ``with`` block. Figures are known when the block has ended."""

    def __init__(self, *, reset: bool = True) -> None:
        self._reset = reset
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._held = ExitStack()

    def __enter__(self) -> Compiles:
        import torch
        from torch._logging._internal import LazyTraceHandler

        if self._reset:
            torch.compiler.reset()
        self._folder = tempfile.TemporaryDirectory(prefix="traceview-")
        handler = LazyTraceHandler(self._folder.name)
        self._held.callback(handler.close)
        self._held.enter_context(logged(handler))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._held.close()
        if kind is None:
            _ = self._tables  # read before the folder goes
        if self._folder is not None:
            self._folder.cleanup()

    @cached_property
    def _tables(self) -> Tables:
        if self._folder is None:
            raise RuntimeError("nothing was watched: use it in a with statement")
        damage = Damage()
        logs = (Log(source, "logs", damage) for source in find([self._folder.name]).sources)
        return derive(Tables(gathered(chain.from_iterable(map(parse, logs)))), {})

    @property
    def compiles(self) -> int:
        """Code objects that were compiled, again or for the first time; resumed ones included."""
        return self._tables["compiles"].height

    @property
    def graph_breaks(self) -> int:
        """Lines that broke a graph, each counted once for each reason."""
        return self._tables["break_sites"].height

    @property
    def recompiles(self) -> int:
        """Compiles for which a guard had failed."""
        return self._tables["recompile_causes"]["compile_key"].n_unique()

    @property
    def seconds(self) -> float:
        """Host seconds that all compiles took, one after the other."""
        return float(self._tables["compiles"]["duration_us"].sum()) / 1e6

    @cached_property
    def findings(self) -> Sequence[Finding]:
        """What the rules say of this log, most serious first."""
        found, _ = run_rules(self._tables, catalogue())
        return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))

    def reasons(self) -> str:
        """Each graph break and recompile with its place, and what the rules advise."""
        broken = (f"  {sentence}" for sentence in breaks_of(self._tables))
        again = (f"  {sentence}" for sentence in recompiles_of(self._tables))
        advice = (
            f"  {found.code} {found.title}\n    → {found.what_to_do}"
            for found in self.findings
            if found.code.startswith(_ABOUT)
        )
        return "\n".join([*broken, *again, *advice])


@contextmanager
def compile_budget(
    *,
    compiles: int | None = None,
    graph_breaks: int | None = None,
    recompiles: int | None = None,
    seconds: float | None = None,
    reset: bool = True,
) -> Iterator[Compiles]:
    """AssertionError if the block takes more than this; None: no limit.

    Nothing compiled fails too, unless ``compiles=0``: a limit on what was not seen holds nothing.
    """
    with Compiles(reset=reset) as seen:
        yield seen
    limits = (
        ("compile", compiles, seen.compiles),
        ("graph break", graph_breaks, seen.graph_breaks),
        ("recompile", recompiles, seen.recompiles),
    )
    wrong = [
        f"{numbers.plural(number, noun)}, at most {most}"
        for noun, most, number in limits
        if most is not None and number > most
    ]
    if seconds is not None and seen.seconds > seconds:
        took, most_s = numbers.seconds(seen.seconds), numbers.seconds(seconds)
        wrong.append(f"compiling took {took}, at most {most_s}")
    if not seen.compiles and compiles != 0:
        wrong.append("torch.compile compiled nothing: was a compiled function called?")
    if wrong:
        raise AssertionError(f"{', and '.join(wrong)}\n{seen.reasons()}".rstrip())


@contextmanager
def assert_compiles_once(*, reset: bool = True) -> Iterator[Compiles]:
    """AssertionError if anything is compiled again because a guard failed, or nothing at all is."""
    with compile_budget(recompiles=0, reset=reset) as seen:
        yield seen


@contextmanager
def assert_no_graph_breaks(*, reset: bool = True) -> Iterator[Compiles]:
    """AssertionError if a graph breaks, or nothing is compiled."""
    with compile_budget(graph_breaks=0, reset=reset) as seen:
        yield seen

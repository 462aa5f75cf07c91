"""One run's tables → its diagnosis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import traceview
from traceview.diagnosis.callables import about_others, unreached, with_other_work
from traceview.diagnosis.compiler import break_sites, compile_time, recompile_chains, timeline
from traceview.diagnosis.environment import environment, links, reading
from traceview.diagnosis.excerpts import Place, excerpts, source_reader
from traceview.diagnosis.explained import explanation
from traceview.diagnosis.focus import Focus
from traceview.diagnosis.job.build import job_story
from traceview.diagnosis.model import Diagnosis, GraphBreakSite, Region
from traceview.diagnosis.notes import notes
from traceview.diagnosis.ruling import ruling
from traceview.diagnosis.sentence import worded
from traceview.diagnosis.step import (
    accounting,
    compared_outputs,
    counts,
    fused_kernels,
    graphs,
    kernel_groups,
    regions,
)
from traceview.diagnosis.tree import everyone, job_steps, order_note, tree
from traceview.diagnosis.verdict import compiled_by_us, explained, measured, reasons_first
from traceview.rules.choice import Choice
from traceview.rules.finding import Finding
from traceview.run import Run
from traceview.tables import Tables
from traceview.words.numbers import iso_time

PAIR_COLUMNS = (
    *("pair_index", "eager_ms", "compiled_ms", "speedup", "steps", "clock"),
    *("used", "left_out"),
)


def diagnose(run: Run, tables: Tables, choice: Choice | None = None) -> Diagnosis:
    """The diagnosis of ``run``; ``tables`` hold what was read from it and what was derived.

    Without a ``choice``, traceview's own rules are checked, all with their default settings.
    """
    focus = Focus.of(tables)
    (verdict, reason), steps = measured(tables, focus), job_steps(tables)
    rules = ruling(run, tables, choice)
    findings = tree(rules.findings, rules.follows, steps[0])
    accounts, per_step = accounting(tables, focus), counts(tables, focus)
    story = job_story(tables, focus.pass_name)
    callables, lines = regions(tables, focus), unreached(tables, focus)
    verdict = explained(verdict, reason, tables, focus, findings, rules.explains)
    findings = reasons_first(findings, verdict.why)
    verdict = worded(
        verdict,
        reason,
        findings,
        accounts,
        others=" ".join(
            filter(
                None,
                (
                    with_other_work(focus.first(tables["speedups"])),
                    compiled_by_us(tables, focus),
                    *about_others(tables, focus, verdict, callables, lines),
                ),
            )
        ),
        story=story,
    )
    (shown, cut), sites = graphs(tables, focus), break_sites(tables, focus)
    pairs = focus.pairs(tables)
    remarks = dict.fromkeys(notes(run, tables, focus, verdict, per_step))
    order = order_note(*steps) if findings else None
    return Diagnosis(
        verdict=verdict,
        break_even_steps=focus.first(tables["speedups"]).get("break_even_steps"),
        compile_time=compile_time(tables, focus),
        accounting=accounts,
        counts=per_step,
        regions=callables,
        findings=findings,
        excerpts=excerpts(source_reader(run, tables), _places(findings, callables, sites)),
        not_checked=rules.not_checked,
        rules=rules.used,
        reading=reading(tables),
        environment=environment(run, tables, focus),
        kernels=kernel_groups(tables, focus),
        fused=fused_kernels(tables, focus),
        compiles=timeline(tables, focus),
        recompiles=recompile_chains(tables, focus),
        graph_breaks=sites,
        graphs=shown,
        pairs=tuple({name: row[name] for name in PAIR_COLUMNS} for row in pairs),
        outputs=compared_outputs(tables, focus),
        unreached=lines,
        explanation=explanation(tables, focus),
        job=story,
        notes=(*remarks, *rules.used.notes, *(note for note in (order, cut) if note)),
        links=links(run),
        target=" ".join(run.manifest.target),
        created=iso_time(run.manifest.created_us),
        traceview=run.manifest.traceview or traceview.__version__,
    )


def _places(
    findings: Sequence[Finding], callables: Sequence[Region], sites: Sequence[GraphBreakSite]
) -> Iterator[Place]:
    """Every place that the report shows, the most important first."""
    for finding in everyone(findings):
        for location in (finding.location, *finding.also_at):
            if location is not None:
                yield location.file, location.line
    for region in callables:
        yield region.call_file, region.call_line
    for site in sites:
        yield site.file, site.line

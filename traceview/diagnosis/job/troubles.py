"""What went wrong: waits, stragglers, late compiles, failures; settings that differ; autotuning."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import suppress
from statistics import mode

import polars as pl
from msgspec.structs import replace

from traceview.derive.intervals import length
from traceview.derive.job import earlier
from traceview.diagnosis.focus import Row, code_of, cut, struct_of
from traceview.diagnosis.job.caches import misses, why
from traceview.diagnosis.job.model import (
    ConfigDifference,
    IdleOnCompile,
    JobCause,
    JobFailure,
    JobTuning,
    LateCompile,
    LateCompiles,
    Side,
    Straggler,
    Tuning,
    Wait,
)
from traceview.diagnosis.job.subject import VALUE, Subject, member_name, members_of, ranks
from traceview.json_errors import NOT_JSON
from traceview.tables import grouped
from traceview.words import names
from traceview.words.numbers import seconds

MOST = 40
_TUNING = "_template_autotuning"
_PARTS = {
    "cache_miss": "compiled {name} where the others found it in a cache",
    "more_compiles": "compiled {name} more often",
    "slower": "took longer over {name}",
    "other": "took longer over {name}",
}


def waits(subject: Subject) -> tuple[tuple[Wait, ...], int]:
    """(compiles that other ranks waited for, the longest first; how many more)."""
    found = []
    for rows in grouped(subject.rows("job_waits"), "member", "compile_key").values():
        longest = max(rows, key=lambda row: row["seconds"])
        evidence = "one of their steps took that much longer than usual, and they compiled nothing"
        if longest["basis"] != "measured":
            after = longest["resumed_s"]
            when = f"{seconds(after)} after" if after > 0 else "when"
            evidence = (
                f"{member_name(longest['waiting_member'])} compiled nothing for "
                f"{seconds(longest['seconds'] + max(0.0, after))} and continued {when} it was done"
            )
        wait = struct_of(
            Wait,
            longest,
            rank=member_name(longest["member"]),
            name=names.function(longest["co_name"]),
            file=longest["co_filename"],
            line=longest["co_firstlineno"],
            at_s=subject.at_s(longest["started_us"]),
            ranks=subject.ranks({row["waiting_member"] for row in rows}),
            evidence=evidence,
        )
        found.append(wait)
    found.sort(key=lambda wait: -wait.seconds)
    return tuple(found[:MOST]), max(0, len(found) - MOST)


def stragglers(subject: Subject) -> tuple[Straggler, ...]:
    """Ranks that compiled much longer than the others, the slowest first."""
    found, missed = [], misses(subject)
    for member, rows in grouped(subject.rows("job_stragglers"), "member").items():
        parts = tuple(
            JobCause(
                row["part"],
                _PARTS[row["part"]].format(name=names.function(row["co_name"])),
                row["part_seconds"],
            )
            for row in rows
        )
        reason = parts[0].text
        if rows[0]["part"] == "cache_miss":
            mine = (known for row, known in missed if member in members_of(row["ranks"]))
            if lost := next(mine, None):
                reason = f"its {names.cache(lost.cache)} missed where others hit ({why(lost)})"
        rank = member_name(member)
        found.append(struct_of(Straggler, rows[0], rank=rank, why=reason, parts=parts))
    return tuple(found)


def late(subject: Subject) -> LateCompiles | None:
    """Compiles after the start; None where there was none."""
    rows = subject.rows("late_compiles")
    if not rows:
        return None
    groups = grouped(rows, by=code_of).values()
    ranked = sorted(groups, key=lambda own: -sum(row["seconds"] or 0.0 for row in own))
    timed = subject.frame("late_compiles").select("started_us", "seconds").drop_nulls()
    spans = [(int(start), int(start + 1e6 * spent)) for start, spent in timed.iter_rows()]
    by, step, after = rows[0]["late_by"], rows[0]["after_step"], subject.at_s(rows[0]["after_us"])
    text = f"This counts what began in step {step} or later, by the collector's steps."
    if by == "time":
        text = (
            "Steps were not recorded. This counts what began after the first 10 s in which no rank "
            f"compiled anything: from {seconds(after or 0.0)} after the first compile on."
        )
    elif by != "steps":
        text = (
            f"This counts what began in step {step} or later, by the steps in profiles "
            "(ProfilerStep). Ranks without a profile are assumed to be in the same step as those "
            "with one; before a profile no step is known."
        )
    found = []
    for own in ranked[:MOST]:
        steps = [row["step"] for row in own if row["step"] is not None]
        starts = [row["started_us"] for row in own if row["started_us"] is not None]
        reasons = [row["reason"] for row in own if row["reason"]]
        name, file, line = code_of(own[0])
        compile = LateCompile(
            name=names.function(name),
            file=file,
            line=line,
            ranks=subject.ranks({row["member"] for row in own}),
            compiles=len(own),
            seconds=sum(row["seconds"] or 0.0 for row in own),
            first_step=min(steps, default=None),
            last_step=max(steps, default=None),
            first_at_s=subject.at_s(min(starts, default=None)),
            cause=cut(mode(reasons), VALUE) if reasons else None,
        )
        found.append(compile)
    return LateCompiles(
        basis=by,
        after_step=step,
        after_s=after,
        compiles=len(rows),
        seconds=length(spans) / 1e6,
        rank_seconds=sum(row["seconds"] or 0.0 for row in rows),
        text=text,
        rows=tuple(found),
        left_out=max(0, len(ranked) - MOST),
    )


def failures(subject: Subject) -> tuple[tuple[JobFailure, ...], int]:
    """(compiles that failed, hit the limit or never ended; how many more kinds).

    Failures of the job's earlier starts come last: they may be why there was another one.
    """
    found = [
        _failure(subject, row, len(subject.job.members)) for row in subject.rows("job_failures")
    ]
    for name, attempt in earlier(subject.tables, subject.job.name):
        table = subject.tables["job_failures"].filter(pl.col("pass") == name)
        ranks = subject.tables["job_ranks"].filter(pl.col("pass") == name).height
        for row in table.filter(pl.col("outcome") == "failed").to_dicts():
            failed = _failure(subject, row, ranks)
            found.append(replace(failed, attempt=attempt, first_at_s=None))
    return tuple(found[:MOST]), max(0, len(found) - MOST)


def _failure(subject: Subject, row: Row, everyone: int) -> JobFailure:
    return struct_of(
        JobFailure,
        row,
        reason=cut((row["reason"] or "").strip() or None, 1000),
        name=names.function(row["co_name"]),
        file=row["user_file"] or row["co_filename"],
        line=row["user_line"] if row["user_file"] else row["co_firstlineno"],
        function=row["co_name"],
        ranks=ranks(members_of(row["ranks"]), everyone),
        first_at_s=subject.at_s(row["first_us"]),
        everywhere=row["rank_count"] == everyone,
    )


def configs(subject: Subject) -> tuple[tuple[ConfigDifference, ...], int]:
    """(versions and settings that differ, versions first; how many more)."""
    rows = sorted(subject.rows("job_configs"), key=lambda row: row["section"] != "versions")
    found = []
    for (section, name), same in grouped(rows, "section", "name").items():
        sides = []
        for row in same:
            value = row["value"]
            # As Python writes it, as in cache keys and in the user's own code; several values, one
            # after the other, stay as they are.
            with suppress(*NOT_JSON):
                value = value if value is None else repr(json.loads(value))
            sides.append(Side(subject.ranks(row["ranks"]), cut(value, VALUE)))
        found.append(ConfigDifference(section, name, tuple(sides)))
    return tuple(found[:MOST]), max(0, len(found) - MOST)


def autotuning(subject: Subject) -> JobTuning | None:
    """What autotuning cost while compiling; None where nothing was tuned or recorded."""
    per_rank: dict[str, float] = defaultdict(float)
    for span in subject.job.spans:
        per_rank[span.member] += (span.row["autotune_us"] or 0.0) / 1e6
    phases = subject.frame("compile_phases").filter(pl.col("name").str.ends_with(_TUNING))
    operator = pl.col("name").str.strip_suffix(_TUNING)
    spent = dict(phases.group_by(operator).agg(pl.col("duration_us").sum()).iter_rows())
    choices = subject.frame("autotune_choices").filter(pl.col("is_best"))
    tuned = choices.group_by("op", maintain_order=True).agg(
        pl.col("shapes").drop_nulls().unique(maintain_order=True).str.join("; "),
        pl.len().alias("times"),
        pl.col("member").unique(),
        pl.col("choice").drop_nulls().unique(maintain_order=True).head(3).alias("winners"),
    )
    # The seconds of an operator are of all its shapes.
    rows = [
        struct_of(
            Tuning,
            row,
            shapes=cut(row["shapes"] or None, VALUE),
            seconds=spent[row["op"]] / 1e6 if row["op"] in spent else None,
            ranks=subject.ranks(row["member"]),
        )
        for row in tuned.to_dicts()
    ]
    rows.sort(key=lambda one: -(one.seconds or 0.0))
    most = max(per_rank, key=lambda member: per_rank[member], default=None)
    if most is None or not (per_rank[most] or rows):
        return None
    return JobTuning(
        rank_seconds=sum(per_rank.values()),
        most_seconds=per_rank[most],
        most_rank=member_name(most),
        rows=tuple(rows[:MOST]),
        left_out=max(0, len(rows) - MOST),
    )


def idle(subject: Subject) -> tuple[IdleOnCompile, ...]:
    """Profiles: what of their idle time falls on compiles."""
    found = []
    for row in subject.rows("idle_on_compile"):
        own, other = row["own_compile_s"], row["other_compile_s"]
        parts = [f"{seconds(own)} while it compiled"] if own else []
        parts += [f"{seconds(other)} while another rank compiled"] if other else []
        shown = ", ".join(parts) or "none of it during a compile"
        text = f"idle for {seconds(row['idle_s'])} of {seconds(row['window_s'])}: {shown}"
        found.append(struct_of(IdleOnCompile, row, rank=member_name(row["member"]), text=text))
    return tuple(found)

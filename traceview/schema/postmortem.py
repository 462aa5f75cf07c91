"""Tables of a post-mortem: what was read, which jobs it belongs to, and the story of a job.

A job's tables are made from the logs of all its ranks, with what only they need. Moments are Unix
time by the clock of the rank that wrote them; nothing is corrected for hosts whose clocks differ.
``ranks`` are written as ranges, ``0-16,18-63``; ``p4711`` is a process without a rank.
"""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import CODE, COMPILE, PHASES, Column, table

INPUTS = table("inputs", "one process in one log that was read (a log that names no process has one row)",
    Column("name", pl.String, "the log, relative to what was named on the command line; a.tar.gz!/b.log in an archive"),
    Column("url", pl.String, "file or URL that it lies in"),
    Column("kind", pl.String, "structured, textlog, stderr, kineto, chromium, events, manifest, empty; skipped: nothing of torch's was seen in it"),
    Column("part", pl.String, "name of its files in tables/"),
    Column("pid", pl.Int64, "process id; null: the log names none"),
    Column("rank_from", pl.String, "where the rank is known from: record, name (of the file), process (another log of the same process), or null"),
    Column("host", pl.String, "machine, where a log or a file's name has it"),
    Column("began_us", pl.Float64, "Unix time of its first record with a time, µs"),
    Column("ended_us", pl.Float64, "of its last, µs"),
    Column("chosen", pl.Boolean, "its texts (graphs, code, guards) and its findings represent all ranks that compiled the same"),
    Column("size_bytes", pl.Int64, "size as it lies there, packed or not"),
    Column("bytes_read", pl.Int64, "bytes unpacked and read, of the whole log"),
    Column("records", pl.Int64, "structured log records, of this process"),
    Column("rows", pl.Int64, "rows in all tables, of the whole log"),
    Column("damaged", pl.Int64, "pieces of damage in the whole log, see unreadable"),
    Column("stamp", pl.String, "what changes when the log does: time or tag of the file"),
    Column("error", pl.String, "why it was not read; null: it was"),
)

JOBS = table("jobs", "one attempt of one job: a start of all its ranks",
    Column("job", pl.Int32, "from 1; files that can't be of one job lie in several"),
    Column("attempt", pl.Int32, "from 1, in order of time: restarts"),
    Column("ranks", pl.Int32, "ranks with a log; null: no log names its rank"),
    Column("processes", pl.Int32, "processes with a log"),
    Column("world_size", pl.Int32, "ranks that the job had, where a log has it"),
    Column("folder", pl.String, "the folder that holds all its logs, as the reports show it"),
    Column("began_us", pl.Float64, "Unix time of the first record with a time, µs"),
    Column("ended_us", pl.Float64, "of the last, µs"),
    Column("files", pl.Int32, "logs"),
    Column("records", pl.Int64, "structured log records"),
)

TRACES = table("traces", "one profiler trace that was read; its rows in other tables have its rank and stance",
    Column("name", pl.String, "the trace, as in inputs"),
    Column("pid", pl.Int64, "process whose events it has"),
    Column("stance", pl.String, "compiled: it has marks of torch.compile, or its name contains it; else eager"),
    Column("device", pl.String, "name of the first GPU; null: none, or not recorded"),
    Column("world_size", pl.Int32, "ranks of its job (distributedInfo)"),
    Column("zero_ns", pl.Int64, "Unix time of start_ns 0 of its rows, ns; null: the trace does not tell"),
    Column("span_ns", pl.Int64, "from its first event to the end of its last"),
    Column("events", pl.Int64, "device executions, host calls, operators and marks"),
    Column("other_processes", pl.Int32, "other processes in the same file (a merged trace), which are left out"),
    Column("other_events", pl.Int64, "host and device events of theirs"),
)
_PID = Column("pid", pl.Int64, "process id")
_MEMBER = Column("member", pl.String, "the rank, or p4711: a process whose rank is not known")
_RANKS = Column("ranks", pl.String, "ranks that it is true of, as ranges: 0-16,18-63")
_COUNT = Column("rank_count", pl.Int32, "how many ranks")
_BASIS = Column("basis", pl.String, "measured, derived or heuristic: how it is known")

CACHE_COMPONENTS = table("cache_components", "one component of a cache key that is not what it was at the process's look-up before",
    *COMPILE,
    _PID,
    Column("cache", pl.String, "owner: fx_graph, aotautograd"),
    Column("lookup", pl.Int32, "n-th look-up of the process in that cache with components, from 0"),
    Column("event", pl.String, "how that look-up ended: hit, miss, bypass, guard_miss"),
    Column("key", pl.String, "its key"),
    Column("name", pl.String, "torch's name: gm, example_inputs[0], inductor_config[max_autotune]"),
    Column("digest", pl.String, "torch's hash of it; null: the component is no longer there"),
    Column("value", pl.String, "its first 400 characters"),
    raw=True,
)

CONFIGS = table("configs", "one set of versions or settings that a process logged, each distinct one once",
    *COMPILE,
    _PID,
    Column("section", pl.String, "versions, dynamo_config, inductor_config, functorch_config, compiler_config, world (world_size)"),
    Column("settings", pl.String, "JSON object: name to value"),
    raw=True,
)

COLLECTIVE_SCHEDULES = table("collective_schedules", "the collectives of one compiled graph, in the order in which it runs them",
    *COMPILE,
    _PID,
    Column("schedule", pl.List(pl.String), "operators"),
    raw=True,
)

COMPILE_DIGESTS = table("compile_digests", "what keeps the compiles of two ranks apart, made while the whole log is at hand",
    *COMPILE,
    _PID,
    Column("graph", pl.String, "digest of Dynamo's graphs, without device indexes and addresses"),
    Column("guards", pl.String, "digest of the guards, without device indexes and addresses"),
    Column("collectives", pl.String, "digest of the order of collectives"),
)

JOB_RANKS = table("job_ranks", "one rank of a job: what it compiled",
    _MEMBER,
    Column("pids", pl.List(pl.Int64), "its processes"),
    Column("seconds", pl.Float64, "host seconds of its compiles, nested ones counted once; null: no compile has a duration"),
    *PHASES,
    Column("compiles", pl.Int32, "compiles of frames (backwards not counted)"),
    Column("recompiles", pl.Int32, "of them not the first of their code object"),
    Column("graph_breaks", pl.Int32, "graph breaks, one a compile and line; null: not recorded"),
    Column("failures", pl.Int32, "compiles that failed"),
    Column("hits", pl.Int32, "graphs found in a cache; null: no look-up recorded"),
    Column("misses", pl.Int32, "graphs not found"),
    Column("bypasses", pl.Int32, "graphs that the cache does not take"),
    Column("first_us", pl.Float64, "Unix time at which its first compile began, µs"),
    Column("last_us", pl.Float64, "Unix time at which its last compile ended, µs"),
)

JOB_FRAMES = table("job_frames", "one code object, over all ranks of a job",
    *CODE,
    Column("user_file", pl.String, "user's own location"),
    Column("user_line", pl.Int32, "line there"),
    Column("rank_seconds", pl.Float64, "compile seconds, added up over ranks"),
    Column("most_seconds", pl.Float64, "on the rank with most"),
    Column("most_member", pl.String, "that rank"),
    *PHASES,
    _RANKS,
    _COUNT,
    Column("compiles", pl.Int32, "compiles on all ranks"),
    Column("recompiles", pl.Int32, "of them not the first of a rank"),
    Column("failures", pl.Int32, "of them failed"),
)

JOB_WAITS = table("job_waits", "one compile during which one other rank waited, and did not compile itself",
    *COMPILE,
    _MEMBER,
    *CODE,
    Column("waiting_member", pl.String, "the rank that waited"),
    Column("started_us", pl.Float64, "Unix time at which that began, µs"),
    Column("seconds", pl.Float64, "how long, of the compile"),
    Column("resumed_s", pl.Float64, "how long after the compile's end it went on compiling itself; null where steps were recorded"),
    _BASIS,
)

JOB_DIVERGENCE = table("job_divergence", "one group of ranks that agree on something on which not all ranks do",
    Column("difference", pl.Int32, "number of the difference; its groups share it"),
    Column("kind", pl.String, "frames, graph, guards, collectives"),
    *CODE,
    Column("compile_index", pl.Int32, "n-th compile of the code object, from 0"),
    _RANKS,
    _COUNT,
    Column("digest", pl.String, "what they agree on; null: they did not compile it"),
    Column("compile_key", pl.String, "a compile of the group's first rank"),
)

CACHE_KEY_DIFFERENCES = table("cache_key_differences", "one side of a difference between the cache keys of the same compiles",
    Column("difference", pl.Int32, "number of the difference; its sides share it"),
    Column("cache", pl.String, "fx_graph"),
    Column("between", pl.String, "ranks, or attempts of the job"),
    Column("component", pl.String, "torch's name of what differs; null: the keys are the same"),
    Column("kind", pl.String, "settings, graph, inputs, versions, folder, other"),
    Column("side_pass", pl.String, "attempt of this side"),
    _RANKS,
    _COUNT,
    Column("outcome", pl.String, "hit, miss or both"),
    Column("value", pl.String, "first 400 characters of the component on this side; null: not there"),
    Column("functions", pl.List(pl.String), "functions that it is about, as co_filename:co_firstlineno"),
    Column("compiles", pl.Int32, "look-ups of this side"),
    Column("seconds", pl.Float64, "of a side that missed: compile seconds beyond those of the sides that hit; null: no one hit"),
)

JOB_CONFIGS = table("job_configs", "one side of a version or setting that is not the same on all ranks",
    Column("section", pl.String, "versions, dynamo_config, inductor_config, …"),
    Column("name", pl.String, "its name"),
    Column("value", pl.String, "its value on this side as JSON; null: not set"),
    _RANKS,
    _COUNT,
)

JOB_FAILURES = table("job_failures", "compiles that failed alike",
    Column("outcome", pl.String, "failed, limit (recompile limit) or unfinished"),
    Column("fail_type", pl.String, "CompilationMetrics.fail_type"),
    Column("reason", pl.String, "fail_reason, its first 2,000 characters"),
    *CODE,
    Column("user_file", pl.String, "user's own line: torch's fail_user_frame, else where the frame was called"),
    Column("user_line", pl.Int32, "line there"),
    _RANKS,
    _COUNT,
    Column("times", pl.Int32, "compiles"),
    Column("first_us", pl.Float64, "Unix time of the first, µs"),
)

JOB_STRAGGLERS = table("job_stragglers", "a part of what a rank compiled longer than the median of the others",
    _MEMBER,
    Column("seconds", pl.Float64, "the rank's compile seconds"),
    Column("median_seconds", pl.Float64, "median over the other ranks"),
    Column("part", pl.String, "cache_miss, more_compiles, slower, other"),
    Column("part_seconds", pl.Float64, "seconds more than the median of the others"),
    *CODE,
    Column("compiles", pl.Int32, "compiles behind it"),
    _BASIS,
)

LATE_COMPILES = table("late_compiles", "one compile after the job's start",
    *COMPILE,
    _MEMBER,
    *CODE,
    Column("late_by", pl.String, "steps, profiler_steps, or time: after the first quiet time of all ranks"),
    Column("after_step", pl.Int64, "step from which on it counts as late; null where steps are not known"),
    Column("after_us", pl.Float64, "Unix time from which on it does; null where steps are known, µs"),
    Column("step", pl.Int64, "step in which it began"),
    Column("started_us", pl.Float64, "Unix time, µs"),
    Column("seconds", pl.Float64, "how long it took"),
    Column("reason", pl.String, "guard that failed; null: first compile of its code object, or not recorded"),
)

IDLE_ON_COMPILE = table("idle_on_compile", "a profiler trace: how much of its idle time falls on compiles",
    _MEMBER,
    Column("file", pl.String, "the trace"),
    Column("window_s", pl.Float64, "seconds of the trace"),
    Column("idle_s", pl.Float64, "of these, seconds in which the device was idle"),
    Column("own_compile_s", pl.Float64, "of the idle time, seconds in which this rank compiled"),
    Column("other_compile_s", pl.Float64, "of the rest, seconds in which another rank compiled"),
    _BASIS,
)







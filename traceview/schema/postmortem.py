"""Tables of a post-mortem: what was read, which jobs it belongs to, and the story of a job."""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import Column, table

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
    Column("other_events", pl.Int64, "host events of theirs"),
)

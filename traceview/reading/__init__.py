"""Reading a pile of logs: a map over them (one part a log), and a small reduce.

executors   where the map runs
mapping     the map: a log to a part, by the parser of its kind
parts       what a part is on disk
processes   which processes a log is of
jobs        which processes were started together as attempts of one job; pass and rank of all rows
reduce      all of it put together: partitioned tables, with tables inputs and jobs
opening     the tables as derive and rules get them
"""

from __future__ import annotations

from traceview.reading.opening import of_chosen, open_tables
from traceview.reading.parts import Part
from traceview.reading.reduce import read_all

__all__ = ["Part", "of_chosen", "open_tables", "read_all"]

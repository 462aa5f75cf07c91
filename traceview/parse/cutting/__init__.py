"""A TORCH_TRACE file cut into records, each proved by its digest.

    cutter    the stream to records; what starts its line and has the right digest is done at once
    careful   the rest: foreign lines, wrong digests, envelopes that are no JSON
    ahead     the same in a process of its own, for a large file: places are sent, not bytes
    other     the other process

Neither polars nor a table is needed here, so that the other process starts at once.
"""

from __future__ import annotations

from traceview.parse.cutting.ahead import AHEAD_BYTES, cuts_ahead, cutting_begun
from traceview.parse.cutting.cutter import Readable, cuts
from traceview.parse.cutting.shapes import Record, Stamp

__all__ = ["AHEAD_BYTES", "Readable", "Record", "Stamp", "cuts", "cuts_ahead", "cutting_begun"]

"""Tables of one log written straight to disk, in pieces, while it is read."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from traceview.parse.pieces import in_pieces, write_piece
from traceview.parse.structured.reading import Batches


def write_tables(batches: Batches, folder: Path) -> dict[str, int]:
    """Write ``folder/TABLE.K.parquet`` of all batches; how many pieces each table has.

    Packing runs in a thread beside the reading, one piece behind it, so that memory stays bounded.
    """
    written: Counter[str] = Counter()
    last: Future[None] | None = None
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(1) as writer:
        for table, frame in in_pieces(batches):
            if last is not None:
                last.result()
            last = writer.submit(write_piece, frame, folder / f"{table}.{written[table]}.parquet")
            written[table] += 1
        if last is not None:
            last.result()
    return dict(written)

"""Recorded logs as other processes of other ranks wrote them."""

import gzip
import re
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "structured"
_PID = re.compile(rb"^(V\d{4} [\d:.]+) \d+ ", re.MULTILINE)


def write_log(path, pid, rank=None, name="guards"):
    """A recorded log as another process of another rank wrote it."""
    log = gzip.decompress((FIXTURES / f"{name}.log.gz").read_bytes())
    log = _PID.sub(rb"\1 %d " % pid, log)
    if rank is not None:
        log = re.sub(rb"^(V[^\n]*)\}$", rb'\1, "rank": %d}' % rank, log, flags=re.MULTILINE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(log)
    return path

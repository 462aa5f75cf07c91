"""Runs made of recorded or written text, for the tests of the text logs."""

import gzip
from functools import partial
from pathlib import Path

from traceview.parse.damage import Damage
from traceview.parse.messages.finding import pieces
from traceview.parse.textlogs import read_pass, read_pieces
from traceview.run import Manifest, PassRecord, Run

RECORDED = Path(__file__).parents[2] / "fixtures" / "textlogs"
ASKED = "graph_breaks,recompiles,fusion,schedule,perf_hints,cudagraphs,output_code,autotuning"
HEAD = "1121 10:00:00.001000 4711 torch/"


def make(folder, *, logs=None, stderr=None, asked=ASKED):
    """A run whose pass has these bytes as its text files."""
    record = PassRecord("cold", "raw/cold", environment={"TORCH_LOGS": asked})
    raw = folder / record.raw
    raw.mkdir(parents=True)
    for name, data in (("torch_logs.txt", logs), ("stderr.txt", stderr)):
        if data is not None:
            (raw / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return Run(folder, Manifest(passes=[record])), record


def recorded(name):
    """The log file and the stderr of a scenario of fixtures/textlogs."""
    kinds = ("torch_logs", "stderr")
    return [gzip.decompress((RECORDED / f"{name}.{kind}.txt.gz").read_bytes()) for kind in kinds]


def read(folder, **files):
    """Tables and damage of written text."""
    run, record = make(folder, **files)
    damage = Damage()
    return read_pass(run, record, damage), damage


def read_stream(stream, name, damage, **options):
    """Batches of tables of a text log from anywhere."""
    return read_pieces(partial(pieces, stream), name, damage, **options)


def read_recorded(folder, name):
    """Tables of a recorded scenario, whose text must be undamaged."""
    logs, stderr = recorded(name)
    tables, damage = read(folder, logs=logs, stderr=stderr)
    assert damage.total == 0
    return tables


def lines(prefix, text):
    """``text`` as torch's formatter writes it: the prefix on every line."""
    return "".join(f"{prefix} {line}\n" for line in text.split("\n"))

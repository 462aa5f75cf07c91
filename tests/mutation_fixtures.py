"""Recorded logs of every kind, small enough to be read very often, and how each is checked."""

import gzip
from functools import cache
from itertools import chain
from pathlib import Path

from attribution import misplaced, structured_records, text_records
from mutations import Mutated, mutate, split
from recordings import packing

from traceview.inputs import find
from traceview.parse.damage import Damage
from traceview.parse.merge import gathered
from traceview.reading.mapping import Log, parse

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
RUN, DEVICE_RUN = "good-gb_item", "gpu-bm_no_sync"
#: Of longer logs the beginning is taken.
MOST_BYTES = 400_000
STRUCTURED = ("resets", "autograd", "breaks", "failures", "hits", "inductor", "guards")
TEXT = ("breaks", "recompiles", "training", "noise", "ranks", "suppressed", "resets", "autotune")


def names():
    """Every log: its kind, a slash and its name."""
    yield from (f"structured/{name}" for name in STRUCTURED)
    yield from (f"textlog/{name}.torch_logs" for name in TEXT)
    yield from (f"textlog/{name}.stderr" for name in ("noise", "training", "autotune"))
    yield from ("packed/resets", "kineto/trace", "kineto/device", "events/events")
    yield "chromium/events"


@cache
def log(name):
    """The bytes of a log."""
    kind, _, rest = name.partition("/")
    if kind == "structured":
        return _light(gzip.decompress((FIXTURES / kind / f"{rest}.log.gz").read_bytes()))
    if kind == "textlog":
        return gzip.decompress((FIXTURES / "textlogs" / f"{rest}.txt.gz").read_bytes())
    if kind == "packed":
        return gzip.compress(log(f"structured/{rest}"), mtime=0)
    if kind == "chromium":
        events = (b"".join(p) for p in _payloads(log("structured/breaks")))
        return b"[\n" + b",\n".join(e for e in events if b'"ph"' in e) + b"\n]\n"
    run = DEVICE_RUN if rest == "device" else RUN
    return _recorded(run, {"kineto": ".json.gz", "events": ".jsonl"}[kind])


def _light(whole):
    """The beginning, up to where a record ends."""
    return whole if len(whole) <= MOST_BYTES else whole[: whole.rfind(b"\nV", 0, MOST_BYTES) + 1]


def _payloads(whole):
    for record in whole.split(b"\nV")[1:]:
        yield [line.removeprefix(b"\t") for line in record.split(b"\n")[1:]]


def _recorded(run, suffix):
    """The first file of that name in a recorded run; of a trace its first 300 KB and its end."""
    files = packing.files_of(FIXTURES / "runs" / f"{run}.tar.xz")
    for name in sorted(files):
        if name.endswith(suffix) and "-lines" not in name:
            data = gzip.decompress(files[name]) if suffix.endswith(".gz") else files[name]
            cut = data.rfind(b"\n  },\n", 0, 300_000)
            return data if cut < 0 or len(data) < 400_000 else data[: cut + 4] + b"\n]}\n"
    raise LookupError(suffix)


def tables_of(path, data):
    """Tables of a log's bytes, found and read as a post-mortem does; {} if it is none any more."""
    path.write_bytes(data)
    damage = Damage()
    logs = (Log(source, "logs", damage) for source in find([str(path)]).sources)
    tables = gathered(chain.from_iterable(map(parse, logs)))
    damage.frame("logs")
    return tables


class Checked:
    """One log, read clean once, and what is wrong after each mutation of it."""

    def __init__(self, name, path):
        self.log, self.path = log(name), path
        find_records = {"structured": structured_records, "textlog": text_records}
        records = find_records.get(name.partition("/")[0])
        self.records = records(split(self.log)) if records else None
        self.clean = tables_of(path, self.log)

    def wrong(self, seed):
        """(the mutated log, what is misplaced after mutation ``seed``)."""
        mutated: Mutated = mutate(self.log, seed)
        tables = tables_of(self.path, mutated.data)
        if self.records is None or not tables:
            return mutated, []
        return mutated, misplaced(self.records, self.clean, tables, mutated.lines)

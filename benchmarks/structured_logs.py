"""Makes big structured logs for benchmarks out of recorded ones.

Every copy of a recorded compile gets its own frame id, file, function names and lines, kernel and
node numbers, cache keys and times, so that no two texts are the same; digests are computed again.
``large`` repeats the lines of graphs, generated code, guards and cache keys with other numbers, as
a larger model has them, and the records that describe inputs. ``small`` takes the small compiles
as recorded, and after one of each kind only those without a graph break, recompile or error: some
80 KB each, of which half is torch's configuration.

    python benchmarks/structured_logs.py OUT.log [--megabytes 350] [--shape large|small]
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import md5
from pathlib import Path
from typing import NamedTuple

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
LOGS = ("inductor", "guards", "breaks", "autograd", "failures", "hits")
RUNS = ("gpu-transformer_training", "bad-ct_repeated_blocks", "bad-dd_ddp_splits")
SHAPES = ("large", "small")
#: Of ``large``: times the lines of a text, times the records that describe a tensor.
SCALE, TENSORS = 6, 6
#: Of ``small``: the bytes that a compile has at most, and the logs, by how often each is taken.
SMALL_BYTES = 350_000
SMALL_LOGS = ("inductor", "guards", "hits", "autograd", "breaks", "hits", "failures", "hits")

_RECORD = re.compile(rb"^V\d{4} [\d:.]+ \d+ (?P<place>[^\]]+\] )(?P<envelope>\{.*\})$")
_NUMBER = re.compile(rb"(?<=[a-z]_)\d+\b|(?<=\bbuf)\d+\b")
_IDS = re.compile(rb'(?<="frame_id": )\d+|(?<="compile_id": ")\d+(?=/)')
_COMPILE = re.compile(rb'"frame_id": \d+, "frame_compile_id": \d+')
_TROUBLE = ("recompile_reasons", "dynamo_graph_break_reason", "dynamo_error")
_CONFIGURATION = re.compile(rb'"(\w+_config)": "(?:[^"\\]|\\.)*"')
_CODE_NAME = re.compile(rb'"co_name": "(\w+)"')
_ID = re.compile(rb'(?<="id": )\d+')
_FILES = re.compile(rb'(?<="filename": )\d+')
_STRING = re.compile(rb'(?P<name>\{"str": \[".*?), (?P<number>\d+)\]\}')
_TIME = re.compile(rb'(?<="ts": )[\d.]+|(?<="start_time_us": )\d+')
_KEY = re.compile(rb'(?<="key": ")f\w+')
_LEFT_OUT = re.compile(rb', "(?:has_payload": "\w+"|rank": \d+)')  # one process, one rank
_BODY = re.compile(
    rb"(?:def forward\([^\n]*|^    \):|RootGuardManager|^async_compile = .*)\n", re.M
)


class Template(NamedTuple):
    """One recorded record: where in torch, envelope without digest, payload, kind."""

    place: bytes
    envelope: bytes
    payload: bytes | None
    kind: str


def make(path: Path, megabytes: int, shape: str = "large") -> int:
    """Write a log of that size; how many records it has."""
    if shape == "small":
        first = [_small(list(_templates(log, 1, 1))) for log in _recorded(SMALL_LOGS, ())]
        first = _of_one_process(first)
        again = [_plain(log) for log in first]
    else:
        again = [list(_templates(log, SCALE, TENSORS)) for log in _recorded(LOGS, RUNS)]
        first = []
    records = frames = 0
    with path.open("wb") as out:
        for copy, log in enumerate(itertools.chain(first, itertools.cycle(again))):
            renumber, frames = _renumber(copy, frames, log, shape == "small")
            for template in log:
                out.write(_record(template, renumber, records))
                records += 1
            if out.tell() >= megabytes * 1_000_000:
                return records
    raise AssertionError("unreachable")


def _recorded(logs: Iterable[str], runs: Iterable[str]) -> Iterator[bytes]:
    for name in logs:
        yield gzip.decompress((FIXTURES / "structured" / f"{name}.log.gz").read_bytes())
    for name in runs:
        with tarfile.open(FIXTURES / "runs" / f"{name}.tar.xz") as archive:
            member = next(m for m in archive if re.search(r"/cold/structured/.*\.log$", m.name))
            file = archive.extractfile(member)
            assert file is not None
            yield file.read()


def _templates(log: bytes, scale: int, tensors: int) -> Iterator[Template]:
    for chunk in re.split(rb"\n(?=V\d{4} )", log.rstrip(b"\n")):
        head, _, tail = chunk.partition(b"\n")
        match = _RECORD.match(head)
        if match is None:
            continue
        payload = tail[1:].replace(b"\n\t", b"\n") if b'"has_payload"' in head else None
        kind = re.match(rb'\{"artifact": \{"name": "([^"]+)|\{"(\w+)"', match["envelope"])
        name = (kind[1] or kind[2]).decode() if kind else ""
        envelope = _LEFT_OUT.sub(b"", match["envelope"])
        if payload is not None and name != "chromium_event":
            payload = _enlarge(name, payload, scale)
        for number in range(tensors if name.startswith("describe_") else 1):
            yield Template(match["place"], _plus(_ID, 97 * number, envelope), payload, name)


def _small(log: list[Template]) -> list[Template]:
    """The records of the small compiles, and those that belong to none."""
    size: Counter[bytes] = Counter()
    for template in log:
        size[_compile(template)] += len(template.envelope) + len(template.payload or b"")
    return [t for t in log if not _compile(t) or size[_compile(t)] <= SMALL_BYTES]


def _plain(log: list[Template]) -> list[Template]:
    """The same without compiles that recompile, break or fail."""
    left_out = {_compile(t) for t in log if t.kind in _TROUBLE} - {b""}
    return [t for t in log if _compile(t) not in left_out]


def _of_one_process(logs: list[list[Template]]) -> list[list[Template]]:
    """The same with torch's configuration of the first of them: a process has but one."""
    known: dict[bytes, bytes] = {}

    def first(found: re.Match[bytes]) -> bytes:
        return known.setdefault(found[1], found[0])

    return [
        [t._replace(envelope=_CONFIGURATION.sub(first, t.envelope)) for t in log] for log in logs
    ]


def _compile(template: Template) -> bytes:
    found = _COMPILE.search(template.envelope)
    return found[0] if found else b""


def _enlarge(name: str, payload: bytes, scale: int) -> bytes:
    """``payload`` as a model of ``scale`` times the size would have it."""
    if scale == 1:
        return payload
    if payload.startswith(b"{") and ("cache" in name or "provenance" in name):
        return json.dumps(_wider(json.loads(payload), scale)).encode()
    opened = _BODY.search(payload)
    if opened is None:
        return payload
    last = payload.find(b"\n        return", opened.end())
    end = (last if last > 0 else payload.rfind(b"\n", 0, len(payload) - 2)) + 1
    body = payload[opened.end() : end]
    copies = (_plus(_NUMBER, 100 * number, body) for number in range(scale))
    return payload[: opened.end()] + b"".join(copies) + payload[end:]


def _plus(pattern: re.Pattern[bytes], more: int, text: bytes) -> bytes:
    """``text`` with ``more`` added to every number that ``pattern`` finds."""
    return pattern.sub(lambda found: b"%d" % (int(found[0]) + more), text)


def _wider(value: object, scale: int) -> object:
    if isinstance(value, dict):
        wide = {key: _wider(item, scale) for key, item in value.items()}
        flat = any(":" in key or key[-1:].isdigit() for key in value)
        for number in range(1, scale if flat else 1):
            wide |= {f"{key}{number}": item for key, item in value.items()}
        return wide
    return value * scale if isinstance(value, list) and len(value) > 20 else value


def _renumber(
    copy: int, frames: int, log: list[Template], code: bool
) -> tuple[Callable[[bytes], bytes], int]:
    """What gives a copy numbers and names of its own, and the first frame id after it.

    ``code`` says that its functions have names and lines of their own too.
    """
    salt = 1_000 * copy
    found = {name for t in log for name in _CODE_NAME.findall(t.envelope)} if code else set()
    named = b"|".join(sorted(found)) or b"(?!)"
    names = re.compile(rb'(?<=name": ")(?:%b)(?=")|(?<= in )(?:%b)\b' % (named, named))
    lines = re.compile(
        rb'(?<="line": )\d+(?=, "name": "(?:%b)")|(?<="co_firstlineno": )\d+|'
        rb'(?<=\.py:)\d+(?= in )|(?<=\.py", line )\d+' % named
    )

    def renumber(text: bytes) -> bytes:
        text = _plus(_NUMBER, salt, _plus(_IDS, frames, _plus(_FILES, salt, text)))
        text = _STRING.sub(lambda m: b"%b, %d]}" % (m["name"], int(m["number"]) + salt), text)
        text = _TIME.sub(lambda m: b"%.1f" % (float(m[0]) + copy * 60e6), text)
        text = _KEY.sub(lambda m: b"f" + md5(m[0] + b"%d" % copy).hexdigest().encode(), text)
        if code:
            text = names.sub(lambda m: b"%b_%d" % (m[0], copy), _plus(lines, 3 * copy, text))
        return text.replace(b"/tmp/project/", b"/srv/model_%04d/" % copy)

    highest = max((int(m[0]) for t in log for m in _IDS.finditer(t.envelope)), default=0)
    return renumber, frames + highest + 1


def _record(template: Template, renumber: Callable[[bytes], bytes], number: int) -> bytes:
    second, milli = divmod(number * 7, 1000)
    stamp = b"V1121 %02d:%02d:%02d.%03d000 16655 " % (
        10 + second // 3600, second // 60 % 60, second % 60, milli
    )  # fmt: skip
    envelope = renumber(template.envelope)
    if template.payload is None:
        return stamp + template.place + envelope + b"\n"
    payload = renumber(template.payload)
    digest = md5(payload, usedforsecurity=False).hexdigest().encode()
    head = stamp + template.place + envelope[:-1] + b', "has_payload": "' + digest + b'"}\n\t'
    return head + payload.replace(b"\n", b"\n\t") + b"\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=350)
    parser.add_argument("--shape", choices=SHAPES, default="large")
    args = parser.parse_args()
    print(f"{make(args.out, args.megabytes, args.shape):,} records")


if __name__ == "__main__":
    main()

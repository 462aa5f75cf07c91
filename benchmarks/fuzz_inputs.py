"""Inputs by grammar, for bench_fuzz.py: hypothesis strategies that know how each kind is built.

An input is made of recorded pieces (records, events, lines, members of archives), of which some are
left out, doubled, moved, or have a value changed to one that fits nothing. Digests, lengths and
checksums around a changed value are made right again, mostly: so it reaches what reads it.
"""

import bz2
import gzip
import json
import lzma
import re
import sys
from functools import cache, partial
from hashlib import md5
from pathlib import Path

from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "inputs"))

from hostile_archives import LINKS, NAMES, local, member
from mutation_fixtures import FIXTURES, STRUCTURED, TEXT, log
from mutations import ODD_VALUES
from recordings import packing

#: Runs whose logs have what the others lack: cudagraphs, templates, caches that are passed by.
RUNS = ("gpu-cg_skip_cpu", "gpu-cudagraph_overwritten", "gpu-autotuned_template")
RUNS += ("bad-ct_cache_bypass", "torch2_6-bad-ct_cache_disabled")

_RECORD = re.compile(rb"^(V\d{4} [^\n]*?\] ?)(\{[^\n]*)((?:\n\t[^\n]*)*)", re.MULTILINE)
_VALUE = re.compile(
    rb'("(?:[^"\\\n]|\\.){0,80}"\s*:\s*)'
    rb'("(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|\[[^][{}]{0,200}\])'
)
_TOKEN = re.compile(rb"\d+(?:\.\d+)?|\w+|[^\w\s]")
_LONG_TOKENS = (
    b"(",
    b"[",
    b"a",
    b" ",
    b"\t",
    b"::",
    b"a, ",
    b"a.",
    b"1 ",
    b"/a",
    b"\\",
    b"'\"",
    b"- ",
)
_ODD_TOKENS = (
    *(b"", b"0", b"-1", b"9" * 400, b"1e999", b"nan", b"None", b"(", b")", b"[" * 300, b"}" * 300),
    *(b"\n", b"\r", b"\t", b"\0", b"\xff\xfe", b"\x1b[31m", "\u202e".encode(), b"'", b'"', b"\\"),
    *(b"x" * 5000, b" " * 5000, b"L['x']", b"s0", b"u0", b"***", b"%s%n", b"../", b"0/0", b"!1/2"),
    *(b"==", b"->", b": ", b"::", b"[0/0]", b"[__recompiles]", b"[rank9]:", b"<eval_with_key>.1"),
)
_PREFIXES = (
    *(
        b"",
        b"[rank0]:",
        b"[rank7]: ",
        b"2026-11-20T20:09:53.123Z pod-0 ",
        b"  3: ",
        b"[1,2]<stderr>:",
    ),
    *(b"2026-11-20T20:09:53.123456789Z stdout F ", b"2026-11-20T20:09:53.123456789Z stderr P "),
)
_MOST_PIECE, _MOST_FILE = 20_000, 400_000

few = partial(st.integers, 0)


@cache
def recorded(pattern):
    """Files of recorded runs whose name in the run folder matches, unpacked, the beginning each."""
    found = []
    for run in RUNS:
        files = packing.files_of(FIXTURES / "runs" / f"{run}.tar.xz")
        for name in sorted(name for name in files if re.search(pattern, name)):
            data = gzip.decompress(files[name]) if name.endswith(".gz") else files[name]
            found.append(data[:_MOST_FILE])
    return found


@cache
def records():
    """(before the envelope, envelope, payload) of recorded structured logs, a list each."""
    found = []
    logs = [log(f"structured/{name}") for name in STRUCTURED]
    for data in logs + recorded(r"/structured/.*\.log"):
        parts = [match.groups() for match in _RECORD.finditer(data)]
        found.append([(p, e, t[2:].replace(b"\n\t", b"\n")[:_MOST_PIECE]) for p, e, t in parts])
    return found


@cache
def events(name):
    """The events of recorded traces, a list each, each event as JSON."""
    wholes = [log(name)]
    if name == "kineto/device":
        files = packing.files_of(FIXTURES / "runs" / f"{RUNS[0]}.tar.xz")
        traces = [name for name in sorted(files) if re.search(r"compiled-[\d-]+\.json\.gz", name)]
        wholes += [gzip.decompress(files[name]) for name in traces[:1]]
    found = []
    for whole in map(json.loads, wholes):
        listed = whole["traceEvents"] if isinstance(whole, dict) else whole
        found.append([json.dumps(event).encode() for event in listed[:20_000]])
    return found


@cache
def lines():
    """The lines of recorded text logs, a list each."""
    names = [f"textlog/{name}.torch_logs" for name in TEXT]
    names += [f"textlog/{name}.stderr" for name in ("noise", "training", "autotune")]
    logs = [log(name) for name in names] + recorded(r"/(torch_logs|stderr)\.txt")
    return [data.split(b"\n") for data in logs if data]


@st.composite
def changed(draw, data):
    """``data`` with a value of JSON or a token of text replaced, or a part moved or left out."""
    how = draw(st.sampled_from(("value", "value", "key", "token", "token", "cut", "line", "twice")))
    found = list((_VALUE if how in ("value", "key") else _TOKEN).finditer(data))
    if how in ("value", "key") and found:
        match = found[draw(few(len(found) - 1))]
        other = found[draw(few(len(found) - 1))]
        value = draw(st.sampled_from((*ODD_VALUES, other[2])))
        key = match[1] if how == "value" else draw(st.sampled_from((other[1], b'"":', b'"x":')))
        return data[: match.start()] + key + value + data[match.end() :]
    if how == "token" and found:
        match = found[draw(few(len(found) - 1))]
        other = found[draw(few(len(found) - 1))][0]
        token = draw(st.sampled_from((*_ODD_TOKENS, other, *_LONG_TOKENS)))
        if token in _LONG_TOKENS:
            token *= draw(st.sampled_from((1, 100, 100_000)))
        return data[: match.start()] + token + data[match.end() :]
    start = draw(few(len(data)))
    end = min(len(data), start + draw(few(200)))
    if how == "cut":
        return data[:start] + data[end:]
    if how == "twice":
        return data[:end] + data[start:end] * draw(st.sampled_from((1, 2, 50))) + data[end:]
    rows = data.split(b"\n")
    at, to = draw(few(len(rows) - 1)), draw(few(len(rows) - 1))
    rows[at], rows[to] = rows[to], rows[at]
    return b"\n".join(rows)


@st.composite
def rearranged(draw, pieces, most):
    """Some of ``pieces``, mostly in order: a run of them, with some left out, doubled or moved."""
    start = draw(few(max(0, len(pieces) - 1)))
    taken = list(pieces[start : start + 1 + draw(few(most - 1))])
    for _ in range(draw(few(3))):
        at = draw(few(len(taken) - 1))
        how = draw(few(3))
        if how == 0 and len(taken) > 1:
            del taken[at]
        elif how == 1:
            taken.insert(at, taken[draw(few(len(taken) - 1))])
        elif how == 2:
            taken.insert(at, pieces[draw(few(len(pieces) - 1))])
        else:
            taken.append(taken.pop(at))
    if draw(few(30)) == 30:  # up to the size that the limit of time is for
        at = draw(few(len(taken) - 1))
        piece = taken[at]
        size = len(piece) if isinstance(piece, bytes) else sum(map(len, piece))
        taken[at:at] = [piece] * min(30_000, 800_000 // (size + 1))
    return taken


@st.composite
def several(draw, data, most=3):
    """``data`` changed none to ``most`` times."""
    for _ in range(draw(few(most))):
        data = draw(changed(data))
    return data


def _enveloped(envelope, payload):
    digest = md5(payload).hexdigest().encode()
    if b'"has_payload"' in envelope:
        return re.sub(rb'("has_payload": )"\w*"', rb'\1"%b"' % digest, envelope, count=1)
    return envelope.rstrip(b"}") + b', "has_payload": "%b"}' % digest


@st.composite
def structured(draw):
    """A structured log."""
    sources = records()
    made = []
    taken = draw(rearranged(sources[draw(few(len(sources) - 1))], 40))
    changes = draw(st.sets(few(len(taken) - 1), max_size=4))
    for number, (prefix, envelope, payload) in enumerate(taken):
        if number in changes:
            how = draw(
                st.sampled_from(("payload", "payload", "envelope", "prefix", "kind", "stale"))
            )
            if how == "payload" and payload:
                payload = draw(several(payload))
            elif how == "envelope":
                envelope = draw(several(envelope))
            elif how == "prefix":
                prefix = draw(several(prefix, 1))
            elif how == "kind":
                other = sources[draw(few(len(sources) - 1))]
                payload = other[draw(few(len(other) - 1))][2]
            if how in ("payload", "kind") and b"\n" not in envelope:
                envelope = _enveloped(envelope, payload)
            if how == "stale":
                payload = draw(several(payload, 1))
        tail = b"\n\t" + payload.replace(b"\n", b"\n\t") if payload else b""
        made.append(prefix + envelope + tail)
        if draw(few(30)) == 30:
            made.append(draw(st.sampled_from((b"", b"a foreign line", b"\0" * 600, b"\tx"))))
    return b"\n".join(made) + draw(st.sampled_from((b"\n", b"\n", b"\n", b"")))


@st.composite
def kineto(draw):
    """A profiler trace, in one of its layouts."""
    name = draw(st.sampled_from(("kineto/trace", "kineto/device")))
    sources = events(name)
    taken = draw(rearranged(sources[draw(few(len(sources) - 1))], 120))
    for number in draw(st.sets(few(len(taken) - 1), max_size=5)):
        taken[number] = draw(several(taken[number]))
    if draw(st.booleans()):
        step = (
            b'{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 1, "tid": 1,'
        )
        step += b' "ts": %d, "dur": %d}'
        pair = tuple(draw(st.sampled_from((-1, 0, 1, 10, 10**6, 10**15))) for _ in range(2))
        taken.append(step % (draw(few(3)), *pair))
    between = draw(st.sampled_from((b",\n", b",", b",\n  ", b"\n ,\n")))
    listed = between.join(taken)
    if between == b",\n  ":  # the C++ exporter's
        listed = b",".join(b"\n  {\n" + event[1:-1] + b"\n  }" for event in taken)
    head = b'{"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "deviceProperties":'
    head += b' [{"id": 0, "name": "H100"}], "distributedInfo": {"rank": 1, "world_size": 2},'
    head = draw(several(head, 1)) + b'"traceEvents": ['
    whole = draw(
        st.sampled_from((b"[" + listed + b"]", *[head + listed + b'], "traceName": "x"}'] * 3))
    )
    return whole[: len(whole) - draw(st.sampled_from((0, 0, 0, 1, 30, 300)))]


@st.composite
def textlog(draw):
    """Text of TORCH_LOGS with other lines between, perhaps behind prefixes."""
    sources = lines()
    taken = draw(rearranged(sources[draw(few(len(sources) - 1))], 200))
    if draw(st.booleans()):
        taken += draw(rearranged(sources[draw(few(len(sources) - 1))], 60))
    for number in draw(st.sets(few(len(taken) - 1), max_size=6)):
        taken[number] = draw(several(taken[number]))
    prefix = draw(st.sampled_from(_PREFIXES))
    if draw(few(20)) == 20:
        text = [line.decode("utf-8", "replace") for line in taken]
        return b"\n".join(
            json.dumps({"log": line + "\n", "stream": "stderr"}).encode() for line in text
        )
    end = draw(st.sampled_from((b"\n", b"\n", b"\n", b"\r\n", b"\r")))
    return b"".join(prefix + line + end for line in taken)


@st.composite
def events_file(draw):
    """Events of our own collector."""
    taken = draw(rearranged(log("events/events").splitlines(), 60))
    for number in draw(st.sets(few(len(taken) - 1), max_size=5)):
        taken[number] = draw(several(taken[number]))
    return b"\n".join(taken) + b"\n"


@st.composite
def chromium(draw):
    """The compiler's own events."""
    taken = draw(rearranged(events("chromium/events")[0], 60))
    for number in draw(st.sets(few(len(taken) - 1), max_size=5)):
        taken[number] = draw(several(taken[number]))
    return b"[\n" + b",\n".join(taken) + b"\n]\n"


LOGS = st.one_of(structured(), textlog(), kineto())
_PACK = (partial(gzip.compress, mtime=0), bz2.compress, partial(lzma.compress, preset=0))
_SIZES = (
    None,
    None,
    None,
    None,
    0,
    1,
    511,
    8**11 - 1,
    b"\x80" + b"\xff" * 11,
    b"\xff" * 12,
    b"8" * 12,
)
_BEFORE = (b"long/" * 40 + b"name.log\0", b"17 path=a/b.log\n20 size=00000000700\n", b"9 size=1\n")
_PACKED = (None, None, None, None, 0, 1, 1000, 1 << 30, (1 << 32) - 1)


@st.composite
def archive(draw, depth=0):
    """A tar or zip file, or a packed one, of logs and archives, some with headers that lie."""
    made = []
    tar = draw(st.booleans())
    for number in range(1 + draw(few(3))):
        inner = archive(depth + 1) if depth < 3 and draw(few(3)) == 3 else LOGS
        data = draw(inner)
        if draw(few(8)) == 8:
            data += b"\n" * (1 << 20)
        name = draw(st.sampled_from((f"{number}.log", f"{number}.log", *NAMES.values())))
        if tar:
            kind, link = draw(st.sampled_from(((b"0", ""),) * 20 + tuple(LINKS.values())))
            if draw(few(4)) == 4:  # its name, or more, comes before it
                before = draw(several(draw(st.sampled_from(_BEFORE))))
                made.append(member("x", before, draw(st.sampled_from((b"L", b"x", b"K", b"g")))))
            made.append(member(name[:90], data, kind, link, draw(st.sampled_from(_SIZES))))
        else:
            method = draw(st.sampled_from((8, 8, 8, 0, 12, 95, 93, 97)))
            flags = draw(st.sampled_from((0, 0, 0, 1, 8, 0x800)))
            stored = {12: bz2.compress, 95: _PACK[2]}.get(method, lambda _: None)(data)
            sizes = {
                "packed": draw(st.sampled_from(_PACKED)),
                "size": draw(st.sampled_from(_PACKED)),
            }
            made.append(local(name, data, method, flags=flags, stored=stored, **sizes))
    whole = b"".join(made) + (bytes(1024) if tar else b"PK\5\6" + bytes(18))
    if draw(few(3)) == 3:
        whole = draw(st.sampled_from(_PACK))(whole)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 8)))):
        at = draw(few(len(whole) - 1))
        whole = whole[:at] + bytes([draw(few(255))]) + whole[at + 1 :]
    return whole[: len(whole) - draw(st.sampled_from((0, 0, 0, 0, 1, 100, 1000)))]


TARGETS = {
    "structured": structured(),
    "kineto": kineto(),
    "textlog": textlog(),
    "archive": archive(),
    "events": events_file(),
    "chromium": chromium(),
}

"""Archives of recorded runs give back what was packed, traces in columns too."""

import gzip
import json
from random import Random

import pytest
from recordings import packing

RANDOM = Random(5)


def trace(events):
    """A trace as the profiler writes it: a key a line."""
    listed = ",\n".join(
        "  {\n" + "".join(f'    "{k}": {v}\n' for k, v in e) + "  }" for e in events
    )
    return f'{{\n  "traceEvents": [\n{listed}\n]}}\n'.encode()


def event(n, **more):
    times = {"ts": f"{4430669793850 + 7 * n}.{n % 1000:03}", "dur": f"{RANDOM.randrange(9)}.250"}
    return ({"ph": '"X"', "id": n} | times | more).items()


LIKE_OURS = trace(event(n, name=f'"aten::op{n % 3}"') for n in range(500))
ODD = {
    "negative": trace(event(n, off=-n, part=f"-{n}.125") for n in range(50)),
    "huge": trace(event(n, big=2**63 + n, **{"as hex": f'"0x{n:x}"'}) for n in range(50)),
    "zeros": trace(event(n, number=f"00{n}", real=f"{n}.50", power=f"{n}e3") for n in range(50)),
    "percent": trace(event(n, name=f'"100 %d % {n}%b %% é"') for n in range(50)),
    "cut": LIKE_OURS[:12_345],
    "empty": b"",
    "no trace": b'{"a": 1}',
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_a_trace_is_the_same_again_or_left_as_it_is(text):
    columns = packing.taken_apart(text)
    assert columns is None or packing.put_together(columns) == text


def test_an_archive_gives_back_what_was_packed(tmp_path):
    given = {
        "run/run.json": b"{}",
        "run/raw/cold/profile/eager-1.json.gz": gzip.compress(LIKE_OURS),
        "run/raw/cold/profile/cut-1.json.gz": gzip.compress(LIKE_OURS)[:500],
        "run/raw/cold/logs.txt.gz": gzip.compress(b"plain", mtime=1),
    }
    archive = tmp_path / "x.tar.xz"
    packing.pack(given, archive)
    first = archive.read_bytes()
    packing.unpack(archive, tmp_path / "out")
    for name, data in given.items():
        again = (tmp_path / "out" / name).read_bytes()
        if name.endswith(".gz") and "cut" not in name:
            again, data = gzip.decompress(again), gzip.decompress(data)
        assert again == data
    packing.pack(packing.files_of(archive), archive)
    assert archive.read_bytes() == first
    whole = {"run/" + json.dumps(name): data for name, data in given.items()}  # none ends in .gz
    packing.pack(whole, tmp_path / "plain.tar.xz")
    assert len(first) < 0.7 * (tmp_path / "plain.tar.xz").stat().st_size

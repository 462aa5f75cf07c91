"""What collectors put before each line comes off again, byte for byte."""

import json
import random

import pytest
from logs import read, structured, textlog

from traceview.inputs import find, prefixes

LOG, TEXT = structured(), textlog()


def stamped(prefix):
    """A function that puts ``prefix`` before every line; {n} counts, {ms} looks like a clock."""

    def wrap(log):
        lines = log.split(b"\n")
        heads = (prefix.format(n=n, ms=f"{n % 1000:03}") for n in range(len(lines)))
        return (
            b"\n".join(h.encode() + line for h, line in zip(heads, lines[:-1], strict=False))
            + b"\n"
        )

    return wrap


def docker(log):
    lines = log.decode().splitlines(keepends=True)
    return b"".join(
        json.dumps({"log": line, "stream": "stderr", "time": "2026-11-20T20:09:53Z"}).encode()
        + b"\n"
        for line in lines
    )


def cloud(log):
    lines = log.decode().split("\n")[:-1]
    return b"".join(
        json.dumps({"insertId": "x1", "textPayload": line}).encode() + b"\n" for line in lines
    )


def cri(log):
    """kubelet's format: a line above 16 KiB comes in parts."""
    made = []
    for line in log.split(b"\n")[:-1]:
        parts = [line[at : at + 16384] for at in range(0, len(line), 16384)] or [b""]
        for part in parts:
            mark = b"F" if part is parts[-1] else b"P"
            made.append(b"2026-11-20T20:09:53.123456789Z stderr " + mark + b" " + part + b"\n")
    return b"".join(made)


PREFIXES = {
    "torchrun": stamped("[default0]:"),
    "iso": stamped("2026-11-20T20:09:53.{ms}Z "),
    "syslog": stamped("Nov 20 20:09:53 node-17 train[{n}]: "),
    "pod": stamped("[pod/trainer-0-x7f2k/pytorch] "),
    "compose": stamped("worker-1  | "),
    "stern": stamped("trainer-0 › pytorch "),
    "colours": stamped("\x1b[36mtrainer-0 \x1b[0m| "),
    "several": stamped("2026-11-20 20:09:53,{ms} trainer-0 (worker) : "),
}


@pytest.mark.parametrize("name", PREFIXES)
@pytest.mark.parametrize("log", [LOG, TEXT], ids=["structured", "text"])
def test_prefixes_come_off(tmp_path, name, log):
    (tmp_path / "log").write_bytes(PREFIXES[name](log))
    (source,) = find([str(tmp_path)]).sources
    assert source.kind == ("structured" if log is LOG else "textlog")
    assert source.path is None
    assert read(source) == log


@pytest.mark.parametrize("wrap", [docker, cloud, cri])
@pytest.mark.parametrize("log", [LOG, TEXT], ids=["structured", "text"])
def test_collectors_formats_are_undone(tmp_path, wrap, log):
    (tmp_path / "log").write_bytes(wrap(log))
    (source,) = find([str(tmp_path)]).sources
    assert source.kind == ("structured" if log is LOG else "textlog")
    assert read(source) == log


@pytest.mark.parametrize("wrap", [docker, cri])
def test_a_launchers_prefix_inside_a_collectors_format(tmp_path, wrap):
    (tmp_path / "log").write_bytes(wrap(PREFIXES["iso"](LOG)))
    (source,) = find([str(tmp_path)]).sources
    assert read(source) == LOG


@pytest.mark.parametrize("prefix", ["[rank3]: ", "  3: ", "[default1|3]:", "[1,3]<stderr>:"])
def test_a_rank_stays_where_torch_would_have_put_it(tmp_path, prefix):
    (tmp_path / "log").write_bytes(stamped(prefix)(LOG))
    (source,) = find([str(tmp_path)]).sources
    heads = [line for line in LOG.split(b"\n") if line.startswith(b"V")]
    got = read(source)
    assert got.count(b"[rank3]:V") == len(heads)
    assert got.replace(b"[rank3]:V", b"V") == LOG


def test_torchs_own_rank_is_no_prefix(tmp_path):
    (tmp_path / "log").write_bytes(textlog("ranks"))
    (source,) = find([str(tmp_path)]).sources
    assert source.prefix == ""
    assert source.path is not None


@pytest.mark.parametrize("log", [LOG, TEXT], ids=["structured", "text"])
def test_a_log_without_prefixes_is_left_alone(log):
    assert prefixes.style_of(log) == ""


def test_progress_bars_before_some_lines_are_no_prefix():
    lines = TEXT.split(b"\n")
    for at in range(0, len(lines), 20):
        lines[at] = b"Epoch 3: 10%|##  " + lines[at]
    assert prefixes.style_of(b"\n".join(lines)) == ""


def test_pods_of_several_names_in_one_file(tmp_path):
    halves = (stamped("trainer-0 ")(LOG), stamped("launcher.worker ")(structured("breaks")))
    (tmp_path / "log").write_bytes(b"".join(halves)[: 1 << 22])
    (source,) = find([str(tmp_path)]).sources
    assert source.kind == "structured"
    assert read(source).startswith(LOG)


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_where_blocks_end_does_not_matter(tmp_path, size):
    (tmp_path / "log").write_bytes(PREFIXES["iso"](LOG[:50_000]))
    (source,) = find([str(tmp_path)]).sources
    whole = LOG[:50_000].rpartition(b"\n")[0] + b"\n"
    assert read(source, size) == whole


def test_a_line_without_end_is_given_in_pieces(tmp_path):
    long = b"\tx" + b"x" * (5 << 20) + b"\n"
    (tmp_path / "log").write_bytes(PREFIXES["iso"](LOG + long + LOG))
    (source,) = find([str(tmp_path)]).sources
    assert read(source) == LOG + long + LOG


def test_lines_without_the_prefix_stay_as_they_are(tmp_path):
    rng = random.Random(1)
    lines = PREFIXES["pod"](LOG).split(b"\n")
    for _ in range(10):
        lines.insert(rng.randrange(len(lines)), b"a line of somebody else's")
    (tmp_path / "log").write_bytes(b"\n".join(lines))
    (source,) = find([str(tmp_path)]).sources
    assert read(source).replace(b"a line of somebody else's\n", b"") == LOG

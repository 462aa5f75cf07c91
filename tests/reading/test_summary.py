"""What tables ``inputs`` and ``jobs`` tell beside names: bytes, hosts, the job's ranks."""

import gzip
import tarfile
from hashlib import md5
from pathlib import Path

import pytest
from reading_logs import write_log

from traceview.reading import open_tables
from traceview.reading.processes import host_in_name, world_sizes
from traceview.tables import from_rows

JOB = Path(__file__).resolve().parents[2] / "fixtures" / "jobs" / "restarted.tar.xz"


def test_bytes_read_are_unpacked(tmp_path, read):
    plain = write_log(tmp_path / "logs/plain.log", 7, 0)
    packed = write_log(tmp_path / "packed.log", 8, 1)
    (tmp_path / "logs/packed.log.gz").write_bytes(gzip.compress(packed.read_bytes()))
    _, parts = read(tmp_path / "logs")
    told = {part.name: part.bytes_read for part in parts}
    assert told == {"plain.log": plain.stat().st_size, "packed.log.gz": packed.stat().st_size}


def test_host_and_world_size_are_those_that_a_trace_tells(tmp_path, read):
    with tarfile.open(JOB) as archive:
        member = next(m for m in archive if m.name.endswith("worker0.pt.trace.json"))
        trace = archive.extractfile(member).read()
    write_log(tmp_path / "logs/t_rank_0.log", 1705, 0)
    (tmp_path / "logs/gpu-7.cluster_1705.1795306845095000000.pt.trace.json").write_bytes(trace)
    run, _ = read(tmp_path / "logs")
    tables = open_tables(run)
    hosts = dict(tables["inputs"].select("kind", "host").iter_rows())
    assert hosts == {"structured": None, "kineto": "gpu-7.cluster"}
    assert tables["jobs"].drop_nulls("world_size")["world_size"].to_list() == [4]


def test_world_size_is_what_a_log_tells_of_the_default_group(tmp_path, read):
    log = write_log(tmp_path / "logs/t_rank_1.log", 7, 1)
    payload = b"# World size: 8\nCollective Key,NCCL Est(ms)"
    digest = md5(payload).hexdigest().encode()
    lines = payload.replace(b"\n", b"\n\t")
    with log.open("ab") as file:
        file.write(
            b"V1121 10:00:00.000000 7 torch/_logging/_internal.py:1] "
            b'{"artifact": {"name": "fx_collectives_analytical_estimation"}, "rank": 1, '
            b'"has_payload": "%b"}\n\t%b\n' % (digest, lines)
        )
    write_log(tmp_path / "logs/t_rank_0.log", 6, 0)
    run, _ = read(tmp_path / "logs")
    assert open_tables(run)["jobs"].select("ranks", "world_size").rows() == [(2, 8)]


@pytest.mark.parametrize(("value", "size"), [("4", 4), ("many", None), (None, None)])
def test_a_run_of_ours_tells_the_world_size(value, size):
    setting = {"pass": "cold", "rank": 1, "section": "torch", "name": "world_size", "value": value}
    other = {**setting, "name": "grad_enabled_steps", "value": "3"}
    told = world_sizes("environment", from_rows("environment", [setting, other]))
    assert told.rows() == [(None, 1, size)]


def test_a_name_of_another_process_tells_no_host():
    name = "prof/host_12.1795306845095.pt.trace.json"
    assert host_in_name(name, 12) == "host"
    assert host_in_name(name, 13) is None
    assert host_in_name("worker0.pt.trace.json", 12) is None

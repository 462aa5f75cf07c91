"""A post-mortem's memory stays below its ceiling: what has to give way, and how it ends."""

import gc
import gzip
import subprocess
import sys

import pytest
from cli_runs import Cli, command
from reading_logs import write_log
from work import grow

from traceview import memory
from traceview.limits import Limits
from traceview.memory import held, kept_below, readers_at_once
from traceview.reading import mapping, open_tables
from traceview.reading.executors import Processes

pytestmark = pytest.mark.live

MB = 1 << 20
GREEDY = """
import sys, pathlib, traceview.memory as memory
with memory.kept_below(memory.held() + (60 << 20), pathlib.Path(sys.argv[1])):
    kept = []
    for _ in range(2):
        try:
            while True:
                kept.append(bytearray(b"x" * (1 << 20)))
        except MemoryError:
            print("once", flush=True)
"""


def test_memory_of_processes_that_were_started_counts():
    before = held()
    code = "import sys; kept = bytearray(b'x' * (80 << 20)); print(flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as child:
        child.stdout.readline()
        assert 80 * MB < held() - before < 110 * MB
        child.communicate()


def test_a_file_that_takes_too_much_is_given_up_and_the_rest_is_read(
    job, read, monkeypatch, tmp_path
):
    parse = mapping.parse

    def greedy(log):
        yield from parse(log)
        kept = []
        while log.name.endswith("t2.log"):
            kept.append(bytearray(b"x" * MB))

    monkeypatch.setattr(mapping, "parse", greedy)
    gc.collect()
    with kept_below(int((held() + 400 * MB) / 0.9), tmp_path):
        run, _ = read(job)
    tables = open_tables(run)
    rows = tables["unreadable"].select("file", "kind").rows()
    assert rows == [("node1/t2.log", "out_of_memory")]
    assert set(tables["compiles"]["rank"]) == {0, 1, 2, 3}
    assert memory.readers_killed() == 0


def test_readers_that_take_too_much_together_are_fewer_then(tmp_path):
    gc.collect()
    with kept_below(int((held() + 500 * MB) / 0.9), tmp_path):
        results = dict(Processes(2).map(grow, [300, 301, 1500]))
        assert memory.readers_killed() >= 2
    assert isinstance(results.pop(1500), MemoryError)
    assert results == {300: 300, 301: 301}


def test_there_are_no_more_readers_than_memory_for_them(limit):
    assert readers_at_once(4) == 4
    limit(memory=400 * MB)
    assert readers_at_once(128) == 2
    limit(memory=1)
    assert readers_at_once(128) == 1


@pytest.mark.parametrize(
    "words",
    [
        "postmortem --workers 1 -o out x.log",
        "postmortem --workers 2 -o out x.log",
        "check --max-breaks 9 x.log",
        "compare x.log x.log",
    ],
)
def test_a_report_that_takes_too_much_ends_in_one_sentence(tmp_path, words):
    write_log(tmp_path / "x.log", 1)
    words = command(*words.split(), "--limit", "memory=40M")
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "more than the 0.042 GB of memory" in done.stderr
    assert "--limit memory=" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "scratch").exists()


EVENTS, MEMORY = 600_000, 480
#: Each says how many events are not in its figures.
FORMS = (
    *("report", "report --markdown", "report --json"),
    *(f"compare {form} out" for form in ("", "--markdown", "--html", "--json")),
    *(f"check --no errors --format {form}" for form in ("text", "json", "sarif", "junit")),
    "check --allow-missing --no errors --format github",
)


def test_millions_of_operators_fit_the_ceiling_and_every_form_says_what_is_missing(
    tmp_path, monkeypatch, capfd
):
    """Of some that are all different: with a name for each they would take 720 MB.

    Each thread of polars takes some memory of its own, so there are two on every machine.
    """
    monkeypatch.setenv("POLARS_MAX_THREADS", "2")
    texts = (
        b'{"ph":"X","cat":"cpu_op","name":"op%d","pid":1,"tid":1,"ts":%d,"dur":1}' % (n, 2 * n)
        for n in range(EVENTS)
    )
    trace = b'{"schemaVersion":1,"traceEvents":[\n' + b",\n".join(texts) + b"]}\n"
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(trace, 1))
    words = ["postmortem", "--limit", f"memory={MEMORY}M", "-o", "out", "t.json.gz"]
    done = subprocess.run(command(*words), capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    unread = EVENTS - Limits().names
    assert f"{unread:,} records could not be read" in done.stdout
    monkeypatch.chdir(tmp_path)
    cli = Cli(monkeypatch, capfd)
    for form in FORMS:
        assert f"{unread:,}" in cli(*form.split(), "out").out.replace(str(unread), f"{unread:,}")
    assert cli("ticket", "--no-run-env", "out").code == 0
    for page in ("report.html", "ticket.md"):
        assert f"{unread:,} piece" in (tmp_path / "out" / page).read_text()


def test_who_goes_on_all_the_same_is_ended(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = [sys.executable, "-c", GREEDY, str(scratch)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "once\n")
    assert done.stderr.startswith("traceview: This takes more than")
    assert not scratch.exists()

"""Damaged and hostile run folders, end to end: the report renders and nothing gets through it."""

import gzip
import json
import re
from html.parser import HTMLParser

import pytest
from cli_runs import Cli
from recordings import unpack

GARBAGE = b"\x00\xff\xfe{]\n" + bytes(range(256)) + b"\nV0101 00:00:00.0 not a header\n" * 3
SCRIPT = "<script>alert(1)</script>"
#: A link to a finding has its place in it, reduced to these characters.
ID_ON_PAGE = re.compile(r"#[\w.-]+")
NASTY = f'{SCRIPT}"><img src=x onerror=alert(2)>]]>`|\x1b[31m\u202e{{{{7*7}}}}'


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


def only(folder, pattern):
    (path,) = (path for path in folder.glob(pattern) if "-lines" not in path.name)
    return path


#: Files that are damaged at once: two that nothing is read from together.
FILES = [
    ("raw/cold/events-*.jsonl", "raw/cold/torch_logs.txt"),
    ("raw/cold/structured/*.log", "raw/cold/stderr.txt"),
    ("raw/cold/profile/compiled-*.json.gz", "raw/sources/*.py"),
]
#: In these any text is in order.
FREE = {"raw/cold/stderr.txt", "raw/sources/*.py"}


@pytest.mark.parametrize("patterns", FILES)
def test_files_that_are_missing_cut_or_foreign(cli, tmp_path, patterns):
    run = unpack("bad-gb_item", tmp_path)
    whole = {path: path.read_bytes() for path in (only(run, pattern) for pattern in patterns)}
    strict = {str(only(run, each).relative_to(run)) for each in {*patterns} - FREE}
    for damage in ("cut", "more", "foreign", "empty", "missing"):
        for path, data in whole.items():
            if damage == "missing":
                path.unlink()
            else:
                cut = data[: len(data) * 2 // 3]
                kinds = {"cut": cut, "more": data + GARBAGE, "foreign": GARBAGE, "empty": b""}
                path.write_bytes(kinds[damage])
        assert cli("report", "--json", run).code == 0, damage
        if damage == "foreign":
            reading = json.loads(cli.out)["reading"]
            assert strict <= {row["file"] for row in reading["rows"]}
        assert (run / "report.html").stat().st_size > 10_000


def test_every_raw_file_foreign(cli, tmp_path):
    run = unpack("gpu-pointwise", tmp_path)
    for path in (run / "raw").rglob("*"):
        if path.is_file():
            path.write_bytes(GARBAGE)
    assert cli("report", run).code == 0
    assert (run / "report.html").exists()


class Page(HTMLParser):
    """What a browser would make of the page: its elements, handlers, addresses and scripts."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.handlers, self.images, self.addresses = [], [], [], []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.addresses += [value for name, value in attrs if name in ("href", "src")]
        if tag in ("img", "iframe", "object", "embed"):
            self.images.append(attrs)
        self._in_script = tag == "script"

    def handle_data(self, data):
        if self._in_script:
            self.scripts.append(data)
        self._in_script = False


def _poison(value):
    """``value`` with every text that people write (paths, names, messages) made hostile."""
    if isinstance(value, dict):
        return {
            key: item + NASTY if isinstance(item, str) and key in POISONED else _poison(item)
            for key, item in value.items()
        }
    return [_poison(item) for item in value] if isinstance(value, list) else value


POISONED = {
    "name", "reason", "user_stack", "message", "line", "function", "call_function",
    "why", "python", "platform", "device_name", "default", "what", "backend",
}  # fmt: skip


@pytest.fixture
def hostile(tmp_path):
    """A run whose logs, sources and file names try to get into the page."""
    run = unpack("bad-gb_item", tmp_path)
    script = re.compile(rb"gb_item\.py")
    name = json.dumps("gb_" + NASTY.replace("/", "∕") + ".py").strip('"').encode()
    for path in [*run.glob("raw/cold/events-*"), *run.glob("raw/cold/structured/*")]:
        path.write_bytes(script.sub(lambda _: name, path.read_bytes()))
    for path in (run / "raw/cold/torch_logs.txt", run / "raw/cold/stderr.txt"):
        path.write_bytes(path.read_bytes() + f"\nW0101 {NASTY}\n".encode())
    events = only(run, "raw/cold/events-*.jsonl")
    rows = [json.loads(line) for line in events.read_bytes().splitlines()]
    events.write_text("".join(json.dumps(_poison(row)) + "\n" for row in rows))
    source = only(run, "raw/sources/*.py")
    lines = source.read_text().replace("\n", f"  # {NASTY}\n")
    source.write_text(f'"""{NASTY}"""\n{lines}')
    manifest = json.loads((run / "run.json").read_text())
    manifest["target"] = [NASTY]
    manifest["notes"] = [NASTY]
    (run / "run.json").write_text(json.dumps(manifest))
    for trace in run.glob("raw/cold/profile/*.gz"):
        text = gzip.decompress(trace.read_bytes())
        text = text.replace(b"aten::mul", b"aten::" + SCRIPT.encode())
        trace.write_bytes(gzip.compress(text))
    return run


def test_nothing_gets_through_the_page(cli, hostile):
    clean = Page(_render(cli, unpack("bad-gb_item", hostile.parent / "clean")))
    text = _render(cli, hostile)
    page = Page(text)
    assert "&lt;script&gt;alert(1)" in text
    assert SCRIPT not in text
    assert page.scripts == clean.scripts
    assert page.handlers == []
    assert len(page.images) == len(clean.images)
    leading_out = [each or "" for each in page.addresses if not ID_ON_PAGE.fullmatch(each or "")]
    assert not any("alert" in each for each in leading_out)
    assert "\x1b" not in text


def _render(cli, run):
    assert cli("report", run).code == 0
    return (run / "report.html").read_text()


def test_nothing_gets_through_the_ticket(cli, hostile):
    cli("report", "--markdown", hostile)
    code = r"\\.|(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)"  # an escaped character, or a span or block
    outside = re.sub(code, "", cli.out, flags=re.DOTALL)
    assert "<script" not in outside
    assert "<img" not in outside
    assert "\x1b" not in cli.out
    assert "\u202e" not in cli.out


def test_nothing_gets_through_to_the_terminal(cli, hostile):
    cli("report", hostile)
    assert "alert(1)" in cli.out
    assert "\x1b" not in cli.out
    assert "\u202e" not in cli.out


def test_json_stays_json(cli, hostile):
    cli("report", "--json", hostile)
    assert json.loads(cli.out)["format"] == 2

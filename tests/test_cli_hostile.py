"""Damaged and hostile run folders, end to end: the report renders and nothing gets through it."""

import contextlib
import csv
import gzip
import io
import json
import re
import sys
import zipfile
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints
from xml.etree import ElementTree

import msgspec
import polars as pl
import pytest
from cli_runs import Cli
from recordings import unpack

from traceview.__main__ import main
from traceview.cli.console import Console
from traceview.contracts import plain, text_of
from traceview.derive import derive
from traceview.diagnosis.step import accuracy
from traceview.parse import parse_run
from traceview.query import format_csv, format_json, format_table, run_sql
from traceview.reports import rollout as rollout_forms
from traceview.reports import trials as trials_forms
from traceview.reports.markdown import escape
from traceview.reports.phrases import accuracy_answer
from traceview.rollout.model import Rollout
from traceview.run import Run
from traceview.schema import all_tables
from traceview.tables import Tables, from_rows
from traceview.trials.model import Results

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


@pytest.mark.live
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
    return spoiled(unpack("bad-gb_item", tmp_path))


def spoiled(run):
    """The run folder with hostile text in all of its files."""
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


#: What acts in one place or another: escapes of terminals, text that runs backwards, Markdown,
#: HTML, formulas, commands of GitHub's, ends of XML, of fences, tables and quotes.
ACTS = (
    "\x1b[31m\x1b]0;title\x07\x9b31m\x08\x00\r\x7f",
    "\u202egpj.exe\u2066\u200f\u2028\U000e0041\ud800",
    "@everyone #17 GH-3 torch/torch#5 ![i](http://x/i) [a](javascript:b) http://evil.example/x"
    " www.evil.example $\\hspace{9cm}$ $$y$$",
    "```\n~~~\n</details>|a|b|\n---\n# head\n| a |",
    f"{SCRIPT}\"'><img src=x onerror=b()></svg><style>*{{}}</style><iframe>",
    "\n::error file=a,line=1::x%0A::set-output name=a::b ##[add-matcher]x",
    "]]><!--&x;<?y?>\ufffe\uffff",
    "';drop table runs;--\"`{{7*7}}{%x%}${x}",
)
#: What a spreadsheet takes for formulas.
FORMULAS = ("=cmd|' /C calc'!A0", "+1", "-1+x", "@sum(a)", "\tx", "\rx", "\n=1", "\uff1d1")
FORMULA_SIGNS = tuple("=+@\t\r\n\uff1d\uff0b\uff0d\uff20")
#: Names that are ours, or that tables are joined by.
OURS = frozenset((
    "pass", "stance", "kind", "phase", "clock", "category", "unit", "section", "outcome", "event",
    "compile_id", "compile_key", "raw_file", "origin", "severity", "copy", "device", "basis",
    "graph_key", "rule", "code", "state", "dtype", "way", "purpose", "set_by",
))  # fmt: skip
#: What no output has in it, whatever a terminal, an editor or a reviewer would make of it.
RAW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0041]"
)


def acting(tables):
    """``tables`` with all of ``ACTS`` behind each of their texts, at any place."""
    acts = "".join(ACTS).encode(errors="replace").decode()
    made = Tables()
    for name in tables:
        frame = tables[name]
        texts = [
            column + acts if dtype == pl.String else column.list.eval(pl.element() + acts)
            for column, dtype in (
                (pl.col(c), frame[c].dtype) for c in frame.columns if c not in OURS
            )
            if dtype in (pl.String, pl.List(pl.String))
        ]
        made.put(name, frame.with_columns(texts))
    return made


CHECK = "check --max-breaks 0 --no findings --min-speedup 99 --format {}".format
FORMS = (
    *("report", "report --markdown", "report --json", "ticket --no-run-env", "tables"),
    *(f"compare {form} B" for form in ("", "--markdown", "--html", "--json")),
    *map(CHECK, ("text", "json", "sarif", "junit", "github")),
    "timeline --force -o t.json",
)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What every command says of a run with something that acts in every text; its files, too."""
    folder = tmp_path_factory.mktemp("acting")
    run = spoiled(unpack("bad-gb_item", folder))
    tables = acting(parse_run(Run.open(run)))
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("traceview.parse.load_or_parse", lambda _run, refresh=False: tables)
        patch.chdir(folder)
        for form in FORMS:
            words = [str(run) if word == "B" else word for word in form.split()]
            found[form] = captured(patch, *words, run)
    for path in (run / "report.html", run / "ticket.md", folder / "t.json"):
        found[path.name] = path.read_text()
    with zipfile.ZipFile(run / "ticket.zip") as packed:
        found["ticket.zip"] = "\n".join(packed.namelist())
    return found


def captured(patch, *words):
    """Both streams of a command that succeeds, or finds limits violated."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    patch.setattr(sys, "argv", ["traceview", *map(str, words)])
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with streams[0], streams[1], pytest.raises(SystemExit) as end:
        main()
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    assert end.value.code in (0, 1), texts
    return texts[0]


def test_no_text_of_a_log_is_raw_anywhere(said):
    assert {
        form: {*map(ascii, RAW.findall(text))} for form, text in said.items() if RAW.search(text)
    } == {}
    assert all("everyone" in said[form] for form in ("report", "report --markdown", "report.html"))


@pytest.mark.parametrize("form", ["report.html", "compare --html B"])
def test_a_page_runs_and_loads_nothing(said, form):
    page = Page(said[form])
    (policy,) = re.findall(
        '<meta http-equiv="Content-Security-Policy" content="([^"]*)"', said[form]
    )
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")
    known = re.findall("script-src 'sha256-([^']*)'", policy)
    made = [b64encode(sha256(text.encode()).digest()).decode() for text in page.scripts]
    assert made == known
    assert (page.handlers, page.images) == ([], [])
    assert not re.search(r"""(?:href|src)=["']?(?:javascript|http://)""", said[form])


@pytest.mark.parametrize("form", ["report --markdown", "compare --markdown B", "ticket.md"])
def test_markdown_mentions_links_and_ends_nothing(said, form):
    assert_inert(said[form])


def assert_inert(page):
    """No text in a page of Markdown acts."""
    fenced = re.sub(r"^(`{3,}|~{3,})\w*\n.*?^\1$", "", page, flags=re.M | re.S)
    text = re.sub(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", fenced)
    assert "everyone" in text
    assert not re.search(r"@everyone|(?<!&)#17|GH-3|torch#5|http://|www\.|(?<!\\)\$", text)
    assert not re.search(r"(?<!\\)!\[|(?<!\\)\]\((?!https://meta-pytorch)", text)
    link = r"https://github\.com/pytorch/pytorch/issues\?[\w.%+=]*>"  # to what others reported
    tags = re.findall(rf"<(?!!--|{link})[^>\n]*>", text)
    assert {*tags} <= {"<details>", "</details>", "<summary>", "</summary>"}
    assert text.count("<details>") == text.count("</details>")
    cells = None
    for line in text.splitlines():
        cells = None if not line.startswith("|") else cells or line.replace("\\|", "").count("|")
        assert cells is None or cells == line.replace("\\|", "").count("|"), line


def test_what_machines_read_is_theirs_alone(said):
    for form in ("report --json", "compare --json B", CHECK("json"), CHECK("sarif"), "t.json"):
        assert said[form].isascii()
        json.loads(said[form])
    cases = ElementTree.fromstring(said[CHECK("junit")].encode()).iter("testcase")
    commands = said[CHECK("github")].splitlines()
    assert sum(case.find("failure") is not None for case in cases) == len(commands) - 1 > 2
    assert all(line.startswith("::error ") for line in commands[:-1])
    assert "##[" not in "".join(commands)
    assert commands[-1].startswith("traceview check failed: ")
    *lines, last = said[CHECK("text")].splitlines()
    assert re.fullmatch(r"\d+ pieces? of the logs could not be read, so .*", last)
    assert [line for line in lines if not re.match(r"(max|no|min)-?[\w -]*: ", line)] == []


def filled(kind, text):
    """A value of that type whose every text is ``text``."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return filled(next(one for one in inside if one is not NoneType), text)
    if origin is Literal:
        return inside[0]
    if origin is dict:
        return {filled(inside[0], text): filled(inside[1], text)}
    if origin is tuple:
        return tuple(filled(one, text) for one in inside if one is not Ellipsis)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return kind(**{name: filled(hints[name], text) for name in kind.__struct_fields__})
    return {bool: True, int: 3, float: 1.5}.get(kind, text)


@pytest.mark.parametrize("begin", ["", *FORMULAS])
@pytest.mark.parametrize(
    ("record", "forms"), [(Results, trials_forms), (Rollout, rollout_forms)], ids=["try", "rollout"]
)
def test_records_of_trials_and_rollouts_act_in_no_form(record, forms, begin):
    made = filled(record, begin + "".join(ACTS).encode(errors="replace").decode())
    pages = {name: getattr(forms, name)(made) for name in ("html", "markdown")}
    pages["terminal"], pages["json"] = forms.terminal(made, 80, False), text_of(plain(made))
    if record is Results:
        pages["csv"] = forms.csv(made).replace("\r\n", "\n")
        cells = [cell for row in csv.reader(io.StringIO(pages["csv"])) for cell in row]
        assert [cell for cell in cells if cell.startswith(FORMULA_SIGNS)] == []
    assert {name for name, text in pages.items() if RAW.search(text)} == set()
    page = Page(pages["html"])
    assert (page.scripts, page.handlers, page.images) == ([], [], [])
    assert all(re.match("report.html|#", address or "#") for address in page.addresses)
    assert_inert(pages["markdown"])


def test_a_line_of_markdown_begins_nothing():
    texts = ("- a", "-", "+ a", "---", "===", "1. a", "12) a", "/close", "/label ~bug")
    assert [one for one in texts if not re.match(r"\d*\\", escape(one))] == []
    assert [escape(one) for one in ("-1.5 ms", "1.5 s", "/home/x.py", "a - b")] == [
        *("-1.5 ms", "1.5 s", "/home/x.py", "a - b"),
    ]


def test_an_answer_about_results_is_lines_of_ours(tmp_path):
    tables = acting(parse_run(Run.open(unpack("bad-acc_backend_bug", tmp_path))))
    said = accuracy_answer(*accuracy(derive(tables, {})))
    assert "everyone" in said
    assert not RAW.search(said)
    assert not re.search("^(::|##|---|# head)", said, re.MULTILINE)


def test_a_message_does_not_act(capsys):
    Console().say("".join(ACTS).encode(errors="replace").decode())
    assert not RAW.search(capsys.readouterr().err)


def test_rows_of_a_query_act_in_no_form():
    texts = [act.encode(errors="replace").decode() for act in (*ACTS, *FORMULAS)]
    rows = [{"pass": "cold", "reason": text, "hints": [text]} for text in texts]
    tables = Tables({"graph_breaks": from_rows("graph_breaks", rows)})
    sql = f'select reason as "{"".join(ACTS[:1])}", hints, -1.5 as x from graph_breaks'
    frame = run_sql(tables, sql)
    for write in (format_table, format_csv, format_json):
        assert not RAW.search(write(frame)), write
    cells = [cell for row in csv.reader(io.StringIO(format_csv(frame))) for cell in row]
    assert [cell for cell in cells if cell.startswith(FORMULA_SIGNS)] == []
    assert "'=cmd|' /C calc'!A0" in cells
    assert cells.count("-1.5") == len(rows), "a number is no formula"
    assert [each["hints"] for each in json.loads(format_json(frame))] == [[text] for text in texts]


def test_a_table_on_disk_has_its_declared_names_and_nothing_else(tmp_path):
    rows = [{"pass": "cold", "reason": text} for text in ACTS[:1]]
    acting(Tables({"graph_breaks": from_rows("graph_breaks", rows)})).save(tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name == "graph_breaks.parquet"
    assert [*pl.read_parquet_schema(path)] == [*all_tables()["graph_breaks"].polars_schema]
    assert {*pl.read_parquet_metadata(path)} <= {"ARROW:schema"}


def test_an_error_that_names_a_file_does_not_act(cli, tmp_path):
    assert cli("report", f"{tmp_path}/\x1b[31m\u202e\x9b").code == 4
    assert not RAW.search(cli.err)

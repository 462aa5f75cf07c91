"""The MCP server with the SDK's own client, on stdio; and the skill file."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import jsonschema
import pytest
from cli_runs import Cli, command
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from recordings import unpack

SCHEMA = Path(__file__).parents[1] / "traceview" / "compare" / "schema.json"
TRACEVIEW = [sys.executable, "-m", "traceview"]
live = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]


def talk(folder, conversation):
    """What ``conversation(client)`` returns; the server works in ``folder``."""

    async def whole():
        with (folder / "server.txt").open("w") as said:
            server = StdioServerParameters(
                command=TRACEVIEW[0], args=[*TRACEVIEW[1:], "mcp"], cwd=folder
            )
            async with Client(stdio_client(server, errlog=said)) as client:
                return await conversation(client)

    return anyio.run(whole)


def answers(folder, *calls):
    """What each (tool, arguments) is answered with: data, or an error's text."""

    async def conversation(client):
        found = [await client.call_tool(*call) for call in calls]
        return [x.content[0].text if x.is_error else x.structured_content for x in found]

    return talk(folder, conversation)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = unpack("bad-gb_item", tmp_path_factory.mktemp("agents"))
    subprocess.run([*TRACEVIEW, "report", str(folder)], check=True, capture_output=True)
    return folder


@pytest.mark.live
def test_a_recorded_run_is_read_by_its_handle(run, tmp_path):
    own = {"run": str(run)}
    whole, same, rows, tables, meaning, page = answers(
        tmp_path,
        ("finding", own | {"which": "1"}),
        ("finding", own | {"which": "gb-item"}),
        ("query", own | {"sql": "select category, ms from accounting", "limit": 2}),
        ("tables", own),
        ("tables", own | {"name": "accounting"}),
        ("explain", {"rule": "TV101"}),
    )
    told = json.loads((run / "diagnosis.json").read_text())["findings"][0]
    assert whole == same
    assert (whole["code"], whole["title"]) == ("TV101", told["title"])
    assert whole["at"] == f"{told['location']['file']}:{told['location']['line']}"
    assert whole["change"]["text"] == told["snippet"]["text"]
    assert len(rows["rows"]) == 2
    assert set(rows["rows"][0]) == {"category", "ms"}
    assert tables["accounting"] == meaning["rows"] > 0
    assert "ms" in meaning["columns"]
    assert page["result"].startswith("# gb-item (TV101)")


@pytest.mark.live
def test_every_tool_has_a_schema_and_says_whether_it_runs_code(tmp_path):
    async def conversation(client):
        return (await client.list_tools()).tools

    found = {tool.name: tool for tool in talk(tmp_path, conversation)}
    runs = {"diagnose", "try_remedies", "postmortem"}
    reads = {"finding", "compare", "explain", "tables", "query", "source"}
    assert set(found) == runs | reads
    for name, tool in found.items():
        assert tool.annotations.read_only_hint == (name in reads)
        assert tool.description
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["properties"].keys() >= set(tool.input_schema["required"])
        assert "ctx" not in tool.input_schema["properties"]


@pytest.mark.live
def test_a_comparison_is_short_and_the_contract_is_there(run, tmp_path):
    after = unpack("good-gb_item", tmp_path)
    sides = {"before": str(run), "after": str(after)}
    short, whole = answers(tmp_path, ("compare", sides), ("compare", sides | {"whole": True}))
    jsonschema.validate(whole, json.loads(SCHEMA.read_text()))
    assert short["headline"] == whole["headline"]
    assert [each["code"] for each in short["findings"]] == ["TV101"]
    assert short["findings"][0]["change"] == "went"
    assert {each["change"] for each in short["figures"]} == {"better", "changed"}
    assert len(json.dumps(short)) < 6000 < len(json.dumps(whole))


@pytest.mark.live
def test_an_answer_to_a_query_is_bounded(run, tmp_path):
    sql = "select settings from configs cross join cpu_ops order by length(settings) desc"
    (found,) = answers(tmp_path, ("query", {"run": str(run), "sql": sql, "limit": 200}))
    texts = [cell for row in found["rows"] for cell in row.values() if isinstance(cell, str)]
    assert any(re.search(r"… \([\d,]+ more characters\)$", text) for text in texts)
    assert max(map(len, texts)) < 2050
    assert found["rows_left_out"] == 200 - len(found["rows"]) > 0
    assert len(json.dumps(found["rows"])) < 62_000


@pytest.mark.live
def test_source_is_the_runs_own_copy_and_nothing_else(run, tmp_path):
    file, line = answers(tmp_path, ("finding", {"run": str(run), "which": "1"}))[0]["at"].rsplit(
        ":", 1
    )
    own = {"run": str(run), "line": int(line), "around": 1}
    lines, foreign = answers(
        tmp_path, ("source", own | {"file": file}), ("source", own | {"file": "/etc/hostname"})
    )
    assert ".item()" in lines["lines"][line]
    assert len(lines["lines"]) == 3
    assert "This run has no copy of /etc/hostname" in foreign


@pytest.mark.live
def test_errors_are_facts_and_the_server_goes_on(run, tmp_path):
    own = {"run": str(run)}
    *errors, right = answers(
        tmp_path,
        ("finding", {"run": str(tmp_path / "none"), "which": "1"}),
        ("finding", own | {"which": "TV999"}),
        ("query", own | {"sql": "drop table accounting"}),
        ("query", own | {"sql": "select 1", "limit": 10_000}),
        ("postmortem", {"paths": [str(tmp_path / "no-logs")]}),
        ("diagnose", {"target": [str(tmp_path / "no.py")]}),
        ("explain", {"rule": "gb-item"}),
    )
    expected = ("no diagnosis", "no finding", "one SELECT", "200", "no-logs", "no.py")
    for error, words in zip(errors, expected, strict=True):
        assert words in error
        assert "Traceback" not in error
    assert right["result"].startswith("# gb-item")
    assert not list(tmp_path.glob("traceview-*"))


def test_no_text_of_a_log_acts_in_an_answer(run, tmp_path):
    own = {"run": str(run)}
    act = "\x1b[31m\u202e\x9b1m\x07"
    rows, error, missing = answers(
        tmp_path,
        ("query", own | {"sql": f"select '{act}x' as a"}),
        ("source", own | {"file": f"{act}y", "line": 1}),
        ("finding", own | {"which": f"{act}z"}),
    )
    assert rows["rows"] == [{"a": "<U+202E><U+0007>x"}]
    assert "no copy of <U+202E>" in error
    for text in (error, missing):
        assert not {*act[:1], "\u202e", "\x9b"} & {*text}


@pytest.mark.live
def test_a_job_of_logs(tmp_path):
    logs = unpack("bad-gb_item", tmp_path) / "raw"
    (found,) = answers(tmp_path, ("postmortem", {"paths": [str(logs)]}))
    assert Path(found["run"]) == tmp_path / "traceview-postmortem"
    assert found["verdict"]["outcome"]
    assert "TV101" in {each["code"] for each in found["findings"]}
    assert found["job"]


SCRIPT = """
import time, torch
@torch.compile(backend="eager")
def scaled(x):
    return x * x.sum().item()
x = torch.randn(8)
for _ in range(100_000):
    scaled(x)
    time.sleep(1e-4)
"""


@pytest.mark.parametrize("_live", [pytest.param(0, marks=live)])
def test_a_script_is_diagnosed_and_a_patch_tried(_live, tmp_path):
    (tmp_path / "scaled.py").write_text(SCRIPT)
    said = []

    async def heard(progress, total, message):
        said.append((progress, message))

    async def conversation(client):
        found = await client.call_tool(
            "diagnose", {"target": ["scaled.py"]}, progress_callback=heard
        )
        made = found.structured_content
        asked = {"run": made["run"], "only": ["torch._dynamo.config.capture_scalar_outputs=True"]}
        tried = await client.call_tool("try_remedies", asked | {"budget": "60s"})
        return made, tried.structured_content

    found, tried = talk(tmp_path, conversation)
    assert found["run"] == str(tmp_path / "traceview-scaled")
    assert Path(found["report"]).is_file()
    verdict = found["verdict"]
    assert verdict["speedup_interval"][0] <= verdict["speedup"] <= verdict["speedup_interval"][1]
    assert "TV101" in {each["code"] for each in found["findings"]}
    assert [number for number, _ in said] == sorted({number for number, _ in said})
    assert "reading the logs" in {message for _, message in said}
    (trial,) = tried["trials"]
    assert trial["settings"] == ["torch._dynamo.config.capture_scalar_outputs=True"]
    assert trial["verdict"] in {"accepted", "no_gain", "slower"}


@pytest.mark.parametrize("_live", [pytest.param(0, marks=live)])
def test_a_cancelled_diagnosis_ends_the_script(_live, tmp_path):
    pid = tmp_path / "pid"
    (tmp_path / "endless.py").write_text(
        f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )

    async def conversation(client):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "diagnose", {"target": ["endless.py"]})
            with anyio.fail_after(60):
                while not (pid.exists() and pid.read_text()):
                    await anyio.sleep(0.1)
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            while Path(f"/proc/{pid.read_text()}").exists():
                await anyio.sleep(0.1)
        return await client.call_tool("explain", {"rule": "gb-item"})

    assert not talk(tmp_path, conversation).is_error


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("_live", [pytest.param(0, marks=live)])
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_server_that_is_ended_takes_the_script_with_it(_live, name, tmp_path):
    pid = tmp_path / "pid"
    (tmp_path / "endless.py").write_text(
        f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )

    async def conversation(client):
        async def ask():
            with suppress(MCPError):
                await client.call_tool("diagnose", {"target": ["endless.py"]})

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            with anyio.fail_after(60):
                while not (pid.exists() and pid.read_text()):
                    await anyio.sleep(0.1)
            os.kill(parent(parent(pid.read_text())), getattr(signal, name))
            with anyio.fail_after(30):
                while Path(f"/proc/{pid.read_text()}").exists():
                    await anyio.sleep(0.1)

    talk(tmp_path, conversation)


def test_without_the_sdk_the_remedy_is_named(tmp_path):
    code = "import sys; sys.modules['mcp.server.mcpserver'] = None; sys.argv[1:] = ['mcp']\n"
    code += "from traceview.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert 'pip install "traceview[mcp]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_the_skill_names_commands_and_options_that_exist(monkeypatch, capfd):
    skill = Cli(monkeypatch, capfd)("skill").out
    assert re.match(r"---\nname: traceview\ndescription: .+\n---\n", skill)
    for words in set(re.findall(r"`traceview ([a-z]+)([^`]*)`", skill)):
        helped = subprocess.run(command(words[0], "--help"), capture_output=True, text=True)
        assert helped.returncode == 0, words
        for option in re.findall(r"--[a-z-]+", words[1]):
            assert option in helped.stdout or option == "--lr", words

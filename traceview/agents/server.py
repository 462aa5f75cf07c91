"""The MCP server: traceview's commands as tools for coding agents, over stdio.

Answers are short and name the run folder, the handle to all the rest. Only ``diagnose`` and
``try_remedies`` run anything of the user's; no tool changes a file of theirs.
"""

from __future__ import annotations

import functools
import itertools
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from traceview import __version__
from traceview.agents import answers
from traceview.agents.answers import Answer
from traceview.agents.commands import Done, carry_out
from traceview.collectors.output_folder import default_name, new_folder
from traceview.diagnosis import from_json
from traceview.diagnosis.excerpts import source_reader
from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.tree import everyone
from traceview.errors import TraceviewError
from traceview.json_errors import NOT_JSON
from traceview.parse import load_or_parse
from traceview.run import Run

MOST_ROWS = 200
MOST_LINES = 200
QUERY_SECONDS = 120
_HERE = Path()
_INSTRUCTIONS = """\
traceview measures and explains what torch.compile does to a script. Start with `diagnose`, read \
verdict.why (what made the difference, in ms per step) and the findings, `try_remedies` to \
measure what their advice gains, change the source, `diagnose` again and `compare`. A finding's \
cost is a prediction until a trial has measured it."""

_Target = Annotated[
    list[str], Field(min_length=1, description="the script and its arguments, as after `python`")
]
_Folder = Annotated[str, Field(description="a run folder, as other tools name it in `run`")]
_Cwd = Annotated[str | None, Field(description="folder to run in (default: the server's)")]
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_RUNS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)


def made() -> MCPServer[Any]:
    """The server, with its tools; ``run("stdio")`` serves."""
    server: MCPServer[Any] = MCPServer("traceview", instructions=_INSTRUCTIONS, version=__version__)
    tools: dict[Callable[..., Awaitable[Any]], ToolAnnotations] = {
        **dict.fromkeys((diagnose, try_remedies, postmortem), _RUNS),
        **dict.fromkeys((finding, compare, explain, tables, query, source), _READS),
    }
    for tool, hints in tools.items():
        server.add_tool(_facts_of_errors(tool), annotations=hints)
    return server


async def diagnose(
    target: _Target,
    ctx: Context[Any, Any],
    cwd: _Cwd = None,
    module: Annotated[
        bool, Field(description="target[0] is a module, as after `python -m`")
    ] = False,
    compile_target: Annotated[
        str | None,
        Field(description="what to compile in a script that doesn't: `auto`, `__main__:model`, …"),
    ] = None,
    timeout_s: Annotated[float | None, Field(gt=0)] = None,
) -> Answer:
    """Run an unmodified script, compare eager with compiled, and explain the result.

    Takes a minute or two: the script runs until its steps are measured, and is then stopped.
    """
    words = ["diagnose", "--json"]
    words += ["--compile", compile_target] if compile_target else []
    words += ["--timeout", str(timeout_s)] if timeout_s else []
    after = ["-m", *target] if module else ["--", *target]
    return await _diagnosed(words, default_name(target[0], module=module), after, cwd, ctx)


async def try_remedies(
    run: _Folder,
    ctx: Context[Any, Any],
    only: Annotated[
        list[str],
        Field(description="rules (`rc-dynamic-false`, `TV101`) or settings (`mode=max-autotune`)"),
    ] = [],  # noqa: B006 - a default of the schema
    patch: Annotated[
        str | None, Field(description="a unified diff of one file to try; the file stays as it is")
    ] = None,
    budget: Annotated[str, Field(pattern=r"^\d+(\.\d+)?[smh]$")] = "5m",
) -> Answer:
    """Try what the findings of a run advise (or your own settings or diff) and measure the gain.

    `accepted` means: faster beyond the interval, and the outputs agree with eager's.
    """
    folder = Run.open(Path(run)).folder.absolute()
    words = ["try", "--json", "--budget", budget]
    words += ["--only", ",".join(only)] if only else []
    with ExitStack() as stack:
        if patch is not None:
            file = Path(stack.enter_context(tempfile.TemporaryDirectory()), "asked.diff")
            file.write_text(patch, encoding="utf-8")
            words += ["--patch", str(file)]
        done = await _carried_out([*words, str(folder)], folder.parent, ctx)
    return answers.of_trials(_object(done), folder)


async def postmortem(
    paths: Annotated[list[str], Field(min_length=1, description="logs: folders, files, archives")],
    ctx: Context[Any, Any],
    cwd: _Cwd = None,
) -> Answer:
    """Explain the logs that a finished job left (TORCH_TRACE, TORCH_LOGS, profiler traces)."""
    name = default_name("postmortem")
    return await _diagnosed(["postmortem", "--json"], name, ["--", *paths], cwd, ctx)


async def finding(
    run: _Folder,
    which: Annotated[str, Field(description="a finding's number in `findings`, or its code")],
) -> Answer:
    """One finding whole: explanation, evidence, consequences, what to do, the change to make."""
    found = _read(Path(run)).findings
    if which.isdecimal() and 0 < int(which) <= len(found):
        return answers.of_finding(found[int(which) - 1])
    for each in everyone(found):
        if which in (each.code, each.rule):
            return answers.of_finding(each)
    raise ToolError(f"This run has no finding {which!r}; it has {len(found)} causes.")


async def compare(
    before: _Folder,
    after: _Folder,
    ctx: Context[Any, Any],
    whole: Annotated[
        bool, Field(description="the whole contract of `traceview compare --json`")
    ] = False,
) -> Answer:
    """Compare two runs: what got slower or faster, which causes are new or gone."""
    found = _object(await _carried_out(["compare", "--json", "--", before, after], _HERE, ctx))
    return found if whole else answers.of_comparison(found)


async def explain(
    rule: Annotated[str, Field(description="a rule's name or code")], ctx: Context[Any, Any]
) -> str:
    """What a rule finds, why it costs, its evidence, what to do, and where torch says so."""
    return _printed(await _carried_out(["explain", "--", rule], _HERE, ctx))


async def tables(
    run: _Folder,
    ctx: Context[Any, Any],
    name: Annotated[str | None, Field(description="one table: its columns with meanings")] = None,
) -> Answer:
    """The tables of a run that have rows; with `name`, one table's columns and their units."""
    known = _object(await _carried_out(["tables", "--json", "--", run], _HERE, ctx))
    if name is None:
        return {each: known[each]["rows"] for each in known if known[each]["rows"]}
    if name not in known:
        raise ToolError(f"There is no table {name!r}; `tables` without a name lists them.")
    return dict(known[name])


async def query(
    run: _Folder,
    sql: Annotated[str, Field(description="one SELECT on the tables that `tables` lists")],
    ctx: Context[Any, Any],
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 50,
) -> Answer:
    """Run SQL on a run's tables; reads nothing else and writes nothing.

    Texts are cut after 2,000 characters (`substr` reads on), and rows left out after 60,000.
    """
    words = ["query", "--format", "json", "--limit", str(limit), "--", run, sql]
    with anyio.move_on_after(QUERY_SECONDS) as scope:
        printed = _printed(await _carried_out(words, _HERE, ctx))
    if scope.cancelled_caught:
        raise ToolError(f"The query took more than {QUERY_SECONDS} s: ask for less.")
    return answers.of_rows(json.loads(printed)) | {"limit": limit}


async def source(
    run: _Folder,
    file: Annotated[str, Field(description="a file that a finding names")],
    line: Annotated[int, Field(ge=1)],
    around: Annotated[int, Field(ge=0, le=MOST_LINES // 2)] = 10,
) -> Answer:
    """Lines of a source file as it was when the run was recorded."""
    opened = Run.open(Path(run))
    parsed = await anyio.to_thread.run_sync(load_or_parse, opened)
    text = source_reader(opened, parsed)(file)
    if text is None:
        raise ToolError(f"This run has no copy of {file}.")
    lines = text.split("\n")
    first, last = max(1, line - around), min(len(lines), line + around)
    return {"file": file, "lines": {number: lines[number - 1] for number in range(first, last + 1)}}


# -- how they run -----------------------------------------------------------------------------


def _facts_of_errors(tool: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Texts that act nowhere; our own errors become the client's: a fact and a remedy."""

    @functools.wraps(tool)
    async def guarded(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        try:
            return answers.shown(await tool(*args, **kwargs))
        except TraceviewError as error:
            raise ToolError(answers.shown(f"{error.fact} {error.remedy}")) from error
        except ToolError as error:
            raise ToolError(answers.shown(str(error))) from error

    return guarded


async def _carried_out(words: Sequence[str], cwd: Path, ctx: Context[Any, Any]) -> Done:
    count = itertools.count(1)

    async def report(line: str) -> None:
        await ctx.report_progress(next(count), message=answers.shown(line))

    return await carry_out(words, cwd, report)


async def _diagnosed(
    words: Sequence[str], name: str, after: Sequence[str], cwd: str | None, ctx: Context[Any, Any]
) -> Answer:
    """The short answer of a command that makes a run folder, a new one."""
    where = Path(cwd or ".").absolute()
    with ExitStack() as held:  # the command claims it for itself
        folder = new_folder(where / name, _SILENT, held)
    try:
        done = await _carried_out([*words, "-o", str(folder), *after], where, ctx)
    finally:
        with suppress(OSError):
            folder.rmdir()  # nothing was recorded in it
    _object(done)
    return answers.of_diagnosis(_read(folder), folder)


def _printed(done: Done) -> str:
    """What a command printed; a ToolError of what it said on stderr if it failed."""
    if done.code:
        raise ToolError(done.said)
    return done.stdout


def _object(done: Done) -> Answer:
    """The JSON that a command printed; a ToolError of what it said on stderr if it printed none."""
    try:
        found = json.loads(done.stdout)
    except NOT_JSON:
        raise ToolError(done.said or f"traceview ended with exit code {done.code}.") from None
    return dict(found)


def _read(folder: Path) -> Diagnosis:
    try:
        return from_json(json.loads((folder / "diagnosis.json").read_bytes()))
    except (OSError, *NOT_JSON) as error:
        raise ToolError(f"{folder} has no diagnosis: run `diagnose` or `postmortem`.") from error


class _Silent:
    """Messages go to the client as the command prints them, not from here."""

    def say(self, text: str) -> None: ...

    def progress(self, text: str | None) -> None: ...


_SILENT = _Silent()

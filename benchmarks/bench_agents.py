"""Can a program make scripts faster through the MCP server's tools alone?

A scripted client, which knows nothing but the tools' answers, works on a copy of each script of
``evaluation/scripts``: ``diagnose``, ``try_remedies``, what is recommended put into the copy,
``diagnose`` again. It counts as improved if the compiled step of the second diagnosis is faster by
more than both intervals leave open.

    python benchmarks/bench_agents.py NAME... [--keep DIR] [--budget 2m]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from evaluation_set import percent, scripts, stored
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

_SETTING = re.compile(r"(torch\.[\w.]+)\.(\w+)=(.+)")


async def worked_on(script: Path, folder: Path, budget: str) -> dict[str, Any]:
    """Both verdicts, and what was put into the script between them."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / script.name
    shutil.copy(script, copy)
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "traceview", "mcp"], cwd=folder
    )
    with (folder / "server.txt").open("w") as said:
        async with Client(stdio_client(server, errlog=said)) as client:

            async def answer(tool: str, **arguments: Any) -> dict[str, Any]:
                found = await client.call_tool(tool, arguments)
                if found.is_error:
                    raise RuntimeError(str(found.content[0]))
                return dict(found.structured_content or {})

            before = await answer("diagnose", target=[copy.name])
            tried = await answer("try_remedies", run=before["run"], budget=budget)
            best = tried["recommended"]
            left = written(copy, best) if best else ["nothing is recommended"]
            after = await answer("diagnose", target=[copy.name]) if not left else None
    return {
        "before": before["verdict"],
        "recommended": best,
        "left": left,
        "after": after and after["verdict"],
    }


def written(copy: Path, best: dict[str, Any]) -> list[str]:
    """Put a recommendation into the script; what it can't write into one is returned."""
    lines, left = [], []
    for setting in best["settings"]:
        if found := _SETTING.fullmatch(setting):
            lines.append(f"import {found[1]}; {setting}")
        else:
            left.append(setting)
    if best["patch"]:
        words = ["patch", "--quiet", str(copy)]
        done = subprocess.run(words, input=best["patch"], text=True, capture_output=True)
        left += [done.stdout] if done.returncode else []
    if lines and not left:
        text = copy.read_text()
        at = text.index("import ")  # behind the docstring
        copy.write_text(text[:at] + "\n".join(lines) + "\n" + text[at:])
    return left


def improved(found: dict[str, Any]) -> bool:
    """By the compiled steps; each diagnosis has its own eager steps to tell machines apart."""
    before, after = found["before"], found["after"]
    if not (after and before["compiled_ms"] and after["compiled_ms"]):
        return False
    machine = after["eager_ms"] / before["eager_ms"] if before["eager_ms"] else 1.0
    wide = [high / low for low, high in (before["speedup_interval"], after["speedup_interval"])]
    gain = before["compiled_ms"] / after["compiled_ms"]
    return bool(gain * min(1.0, machine) > max(wide) and gain > 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--budget", default="2m")
    asked = parser.parse_args()
    keep = (asked.keep or Path(tempfile.mkdtemp(prefix="agents-"))).absolute()
    good: list[bool] = []
    for script in scripts(asked.names, None, None):
        folder = keep / script.name
        found = stored(folder, "worked.json")
        if not found:
            shutil.rmtree(folder, ignore_errors=True)
            found = anyio.run(worked_on, script.main, folder, asked.budget)
            (folder / "worked.json").write_text(json.dumps(found))
        good.append(improved(found))
        before, after = found["before"], found["after"] or {}
        best = found["recommended"] or {}
        print(
            f"{script.name}: {before['outcome']}, compiled {before['compiled_ms']} ms ->"
            f" {after.get('compiled_ms')} ms; {', '.join(best.get('trials', ()))}"
            f" {'; '.join(found['left'])} {'' if good[-1] else '(not improved)'}",
            flush=True,
        )
    print(f"improved: {percent(good)}")


if __name__ == "__main__":
    main()

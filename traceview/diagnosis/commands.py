"""Commands to paste, about the run's own target in place of the word SCRIPT."""

from __future__ import annotations

import re
import shlex

from msgspec.structs import replace

from traceview.rules.finding import Finding
from traceview.run import Manifest

_SCRIPT = re.compile(r"\bSCRIPT\b")


def of_target(command: str, manifest: Manifest) -> str:
    """``command`` with the target, its arguments and its ranks; as it is where no run names one."""
    if not manifest.target:
        return command
    if manifest.nproc > 1:
        ranks = f"--nproc-per-node {manifest.nproc}"
        command = command.replace("traceview diagnose", f"traceview diagnose {ranks}")
        command = command.replace("python SCRIPT", f"torchrun {ranks} SCRIPT")
    module = ["-m"] if manifest.target_kind == "module" else []
    target = shlex.join([*module, *manifest.target])
    return _SCRIPT.sub(lambda _: target, command)


def with_target(finding: Finding, manifest: Manifest) -> Finding:
    """``finding`` with its commands about the run's own target."""
    snippet = finding.snippet
    if snippet is None or snippet.language != "shell":
        return finding
    return replace(finding, snippet=replace(snippet, text=of_target(snippet.text, manifest)))

"""``ticket.md``: what a bug tracker's form asks for, in its order, safe to paste.

PyTorch's form is .github/ISSUE_TEMPLATE/pt2-bug-report.yml: Describe the bug, Error logs, Versions.
The labels are those of its triage rubric, by the first backend that fails.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import quote_plus

from traceview.diagnosis import Diagnosis
from traceview.reports.markdown import (
    MAX_BYTES,
    code,
    details,
    escape,
    fenced,
    parts,
    table,
    within_limit,
)
from traceview.reports.trials import words as trial_words
from traceview.ticket.redaction import Level
from traceview.torchtext.stages import STAGES
from traceview.trials.model import Results, Trial
from traceview.words import numbers as fmt

Form = Literal["pytorch", "generic"]
FORMS: tuple[Form, ...] = get_args(Form)
#: Bytes of the diagnosis, characters of a log and of code, rows of a table.
_DIAGNOSIS, _LOG, _CODE, _ROWS = 26_000, 7_000, 9_000, 12
_TITLES: dict[Form, tuple[str, str, str]] = {
    "pytorch": ("🐛 Describe the bug", "Error logs", "Versions"),
    "generic": ("What happened", "Error", "Versions"),
}
_LABELS = {
    "eager": "module: dynamo",
    "aot_eager": "module: pt2-dispatcher",
    "aot_eager_decomp_partition": "module: inductor",
    "inductor": "module: inductor",
}
_SEARCH = "https://github.com/pytorch/pytorch/issues?q="
_NOT_WORDS = re.compile(r"\[masked [^\]]*\]|['\"].*?['\"]|[/~$]\S+|\S*\d\S*|[^A-Za-z_.: ]")
_LAST_ERROR = re.compile(
    r"(?m)^(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Unsupported|Exit|Interrupt))(?::\s*(?P<message>.*))?$"
)
_BROKEN = ("failed", "changes_results")
_OWN_WORDS = "_Write here, in your own words: what you expected, and what happened._"


@dataclass
class Facts:
    """What a ticket says; every text is private by the time that it is rendered."""

    diagnosis: Diagnosis
    results: Results | None
    form: Form
    level: Level
    #: What follows ``python``.
    command: list[str]
    left_out: list[tuple[str, str]]
    ranks: int = 1
    error: str = ""
    versions: str = ""
    runnable: str = ""
    replaced: list[tuple[str, int, int]] = field(default_factory=list)
    members: list[str] = field(default_factory=list)


def render(facts: Facts) -> str:
    """The page; parts that are too long are shortened and name what the archive has of them."""
    bug, error, versions = _TITLES[facts.form]
    made = facts.diagnosis.traceview or "version not recorded"
    above = [
        f"### {bug}\n\n{_OWN_WORDS}\n\n---",
        f"_From here on a tool wrote this: traceview {escape(made)}, from a recorded run._",
    ]
    below = [
        f"#### Which backend fails\n\n{_ablation(facts)}",
        f"#### How to reproduce\n\n{_reproducer(facts)}",
        _duplicates(facts) if facts.form == "pytorch" else "",
        f"#### What is attached\n\n{_attached(facts)}",
        f"### {error}\n\n{_error(facts)}",
        f"### {versions}\n\n{_versions(facts)}",
    ]
    room = MAX_BYTES - sum(len(part.encode()) for part in (*above, *below))
    limit = min(room, _DIAGNOSIS)
    cut = "\n\n_The rest has no room here; `report.html` in the archive has all of it._\n"
    pages = [
        part if "```" in part else re.sub(r"(?m)^#{2,3} ", "#### ", part)
        for part in parts(facts.diagnosis)
    ]
    sections = (*above, within_limit(pages, cut, limit), *below)
    return "\n\n".join(section.strip() for section in sections if section)


def first_failing(results: Results | None) -> str | None:
    """The first backend of torch's ladder that fails, where trials show that those before hold."""
    tried = {_backend(trial): trial for trial in results.trials} if results else {}
    for stage in STAGES:
        if stage not in tried:
            return None
        if tried[stage].verdict in _BROKEN:
            return stage
    return None


def signature(facts: Facts) -> str:
    """Words to look for an issue with: the error's class, and its message less what is ours."""
    found = list(_LAST_ERROR.finditer(facts.error))
    if found:
        # The class without its module, then the longest words of its message.
        kind = found[-1]["type"].rpartition(".")[2]
        message = " ".join(_NOT_WORDS.sub(" ", found[-1]["message"] or "").split()[:8])
        return f'"{kind}" {message}'.strip()
    failed = next((row.reason for row in facts.diagnosis.compiles if row.outcome == "failed"), None)
    breaks = facts.diagnosis.graph_breaks
    text = failed or (breaks[0].reason if breaks else "")
    return " ".join(_NOT_WORDS.sub(" ", text.partition("\n")[0]).split()[:8])


def _ablation(facts: Facts) -> str:
    trials = facts.results.trials if facts.results else ()
    tried = {_backend(trial): trial for trial in trials}
    rows = [
        [code(f"backend={stage}"), escape(adds), _outcome(tried.get(stage))]
        for stage, adds in STAGES.items()
    ]
    others = [trial for trial in trials if _backend(trial) not in STAGES]
    rows += [
        [code(" ".join((trial.name, *trial.arguments))), "", _outcome(trial)]
        for trial in others[:_ROWS]
    ]
    shown = [table(("Setting", "What it adds to the one before", "Outcome"), rows)]
    stage = first_failing(facts.results)
    if stage is not None and facts.form == "pytorch":
        first = f"{code(stage)} is the first backend that fails"
        shown.append(f"Suggested label: {code(_LABELS[stage])}, since {first}.")
    if facts.diagnosis.job is None and any(stage not in tried for stage in STAGES):
        shown += _to_fill_in(facts, bool(others))
    return "\n\n".join(each.strip() for each in shown)


def _to_fill_in(facts: Facts, with_modes: bool) -> list[str]:
    """What to run for the rows that were not."""
    if facts.diagnosis.verdict.outcome == "failed":
        return [
            "The script fails, so `traceview sweep` can't time its steps: set `backend=` in its"
            " call of torch.compile to each of these, run it, and write down which of them fail."
        ]
    script = shlex.join(facts.command)
    commands = [f"traceview sweep --backends ladder {script}"]
    if not with_modes:
        modes = "--modes default,reduce-overhead,max-autotune --dynamic none,true,false"
        commands.append(f"traceview sweep {modes} {script}")
    return ["These commands fill in what was not run:", fenced("\n".join(commands), "sh")]


def _outcome(trial: Trial | None) -> str:
    if trial is None:
        return "not run"
    words = [" ".join(trial_words.VERDICTS[trial.verdict]), trial_words.gain(trial)]
    words += [f"outputs {trial_words.outputs(trial)}" if trial_words.outputs(trial) else ""]
    said = ", ".join(filter(None, words))
    return f"{escape(said)}{': ' + escape(trial.why, 300) if trial.why else ''}"


def _backend(trial: Trial) -> str:
    """The backend of a trial of the ladder; its name, if it is no such trial."""
    alone = trial.settings[0] if len(trial.settings) == 1 and not trial.arguments else ""
    return alone.partition("backend=")[2] if alone.startswith("backend=") else trial.name


def _reproducer(facts: Facts) -> str:
    if facts.diagnosis.job is not None:
        return "The run was read from logs; its script was not recorded."
    torchrun = ("torchrun", "--nproc-per-node", str(facts.ranks))
    runner = torchrun if facts.ranks > 1 else ("python",)
    shown = [fenced(shlex.join([*runner, *facts.command]), "sh").strip()]
    sources = [name for name in facts.members if name.startswith("raw/sources/")]
    if sources:
        shown.append(
            f"The script as it ran, without its strings: {', '.join(map(code, sources[:5]))}."
        )
    if facts.runnable:
        body = fenced(facts.runnable, "python", _CODE)
        if len(facts.runnable) > _CODE:
            body += "\nAll of it is in `fx_graph_runnable.py` in the archive.\n"
        shown.append(
            "torch's own reproducer of the graph that failed to compile (fx_graph_runnable):"
            + details("fx_graph_runnable.py", body)
        )
    shown.append(
        "Not run on the newest torch; `traceview diagnose --python PATH` runs it with another one."
    )
    return "\n\n".join(each.strip() for each in shown)


def _duplicates(facts: Facts) -> str:
    words = signature(facts)
    if not words:
        return ""
    return f"Issues with the same signature: <{_SEARCH}{quote_plus(f'is:issue {words}')}>"


def _attached(facts: Facts) -> str:
    logs = [name for name in facts.members if "/structured/" in name]
    shown = [
        f"`ticket.zip` has {fmt.plural(len(facts.members), 'file')}: "
        + (
            f"the whole TORCH_TRACE log ({fmt.plural(len(logs), 'file')}), text logs, events,"
            if logs
            else "no TORCH_TRACE log (attach it if there is one),"
        )
        + " the diagnosis and the report."
    ]
    if facts.level == "none":
        shown.append("**Nothing was taken out of it (`--redact none`).**")
    elif facts.replaced:
        rows = [[escape(kind), fmt.count(n), fmt.count(files)] for kind, n, files in facts.replaced]
        shown.append(
            f"What is private was taken out (`--redact {facts.level}`):\n\n"
            + table(("Kind", "Times", "Files"), rows)
        )
    left = table(
        ("Left out", "Why"), [[code(name), escape(why)] for name, why in facts.left_out[:_ROWS]]
    )
    if facts.left_out:
        shown.append(details(f"Left out ({len(facts.left_out)})", left).strip())
    return "\n\n".join(each.strip() for each in shown)


def _error(facts: Facts) -> str:
    if facts.error:
        text = facts.error
        if len(text) > _LOG:
            head, tail = text[: _LOG // 4], text[-_LOG * 3 // 4 :]
            text = f"{head}\n[…: stderr.txt in the archive has all of it]\n{tail}"
        return fenced(text, "text", 2 * _LOG)
    failed = [row for row in facts.diagnosis.compiles if row.outcome == "failed"]
    if failed:
        rows = [[code(row.compile_id), escape(row.reason or "", 400)] for row in failed[:_ROWS]]
        return "No error reached the top. Compiles that failed:\n\n" + table(
            ("Compile", "Reason"), rows
        )
    return "No error."


def _versions(facts: Facts) -> str:
    if facts.versions:
        body = fenced(facts.versions, "text", _LOG)
        if len(facts.versions) > _LOG:
            body += "\nAll of it is in `collect_env.txt` in the archive.\n"
        return details("python -m torch.utils.collect_env", body)
    names = (
        *("torch_version", "triton_version", "cuda_version", "driver_version", "python_version"),
        *("platform", "device_name", "cpu_name", "cpu_threads"),
    )
    known = facts.diagnosis.environment
    rows = [
        [escape(name.replace("_", " ")), escape(str(known[name]))]
        for name in names
        if known.get(name)
    ]
    return "collect_env was not run; this is what the run recorded.\n\n" + table(
        ("Name", "Value"), rows
    )

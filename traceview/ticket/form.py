"""``ticket.md``: what a bug tracker's form asks for, in its order, safe to paste.

A form is data: its fields, by their titles, and what fills each. PyTorch's is
.github/ISSUE_TEMPLATE/pt2-bug-report.yml; vLLM's 400-bug-report.yml and transformers'
bug-report.yml are in the same folder of theirs. Labels are those of PyTorch's triage rubric, by the
first backend that fails.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote_plus

from traceview.diagnosis import Diagnosis
from traceview.reports.markdown import (
    MAX_BYTES,
    code,
    details,
    escape,
    fenced,
    parts,
    prose,
    table,
    within_limit,
)
from traceview.reports.trials import words as trial_words
from traceview.ticket.redaction import Level
from traceview.ticket.reproducer import FAILS, Kind, Reproducer
from traceview.torchtext.stages import STAGES
from traceview.trials.model import Results, Trial
from traceview.words import numbers as fmt

Form = Literal["pytorch", "vllm", "transformers", "generic"]
#: Bytes of the diagnosis, characters of a log and of code, rows of a table.
_DIAGNOSIS, _LOG, _CODE, _ROWS = 26_000, 7_000, 9_000, 12
_LABELS = {
    "eager": "module: dynamo",
    "aot_eager": "module: pt2-dispatcher",
    "aot_eager_decomp_partition": "module: inductor",
    "inductor": "module: inductor",
}
_NOT_WORDS = re.compile(r"\[masked [^\]]*\]|['\"].*?['\"]|[/~$]\S+|\S*\d\S*|[^A-Za-z_.: ]")
_LAST_ERROR = re.compile(
    r"(?m)^(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Unsupported|Exit|Interrupt))(?::\s*(?P<message>.*))?$"
)
_BROKEN = ("failed", "changes_results")
_OWN_WORDS = "_Write here, in your own words: what you expected, and what happened._"
_EXPECTED = "_Write here, in your own words: what you expected._"
_WHO = "_Leave this as it is, or name the people that the form lists; fewer than three._"
#: Boxes of the forms, in their words. The tool can't know which are true.
_SCRIPTS = """The problem arises when using:

- [ ] The official example scripts
- [ ] My own modified scripts"""
_TASKS = """The tasks I am working on are:

- [ ] An officially supported task in the `examples` folder (such as GLUE/SQuAD, ...)
- [ ] My own task or dataset (give details below)"""
_SEARCHED = (
    "- [ ] Make sure you already searched for relevant issues, and asked the chatbot living at the"
    " bottom right corner of the [documentation page](https://docs.vllm.ai/en/latest/), which can"
    " answer lots of frequently asked questions."
)
_KINDS: dict[Kind, str] = {
    "bisected": "the operators that are wrong, by themselves (`traceview accuracy --bisect`)",
    "minified": "the graph at fault, made smaller by torch's minifier",
    "graph": "the graph at fault (torch's fx_graph_runnable)",
    "script": "the script",
}
#: The reproducer's file in the archive.
REPRODUCER = "reproducer.py"
COLLECT_ENV = "torch.utils.collect_env"


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
    #: What printed them: a module.
    versions_by: str = COLLECT_ENV
    reproducer: Reproducer | None = None
    #: Backend → what the script does with it, where it fails and that was tried.
    ladder: dict[str, str] = field(default_factory=dict)
    replaced: list[tuple[str, int, int]] = field(default_factory=list)
    members: list[str] = field(default_factory=list)


#: A text of the form itself, or what writes one.
Fill = str | Callable[..., str]


@dataclass(frozen=True)
class Tracker:
    """Whose form it is: its fields in order, each with its title and what fills it.

    ``repository``: on GitHub, where issues of the same signature are looked for. ``title``: what
    the title of an issue begins with. ``labels``: whether those of PyTorch's rubric are known.
    ``versions``: modules that print what the form wants to know of the machine; the first that
    works is used.
    """

    fields: tuple[tuple[str, tuple[Fill, ...]], ...]
    repository: str = ""
    title: str = ""
    labels: bool = False
    versions: tuple[str, ...] = (COLLECT_ENV,)


def render(facts: Facts) -> str:
    """The page; parts that are too long are shortened and name what the archive has of them."""
    tracker = TRACKERS[facts.form]
    fills = [fill for _, those in tracker.fields for fill in those]
    written = {
        fill: fill if isinstance(fill, str) else fill(facts) for fill in fills if fill != _found
    }
    about = signature(facts) or facts.diagnosis.verdict.headline
    above = f"_Title of the issue: {escape(f'{tracker.title} {about}')}_" if tracker.title else ""
    heads = [f"### {title}" for title, _ in tracker.fields]
    room = MAX_BYTES - sum(len(part.encode()) + 2 for part in (above, *heads, *written.values()))
    written[_found] = _found(facts, room)
    sections = [above]
    for head, (_, those) in zip(heads, tracker.fields, strict=True):
        sections += [head, *(written[fill] for fill in those)]
    return "\n\n".join(section.strip() for section in sections if section)


def _found(facts: Facts, room: int) -> str:
    """The diagnosis, in the room that all other parts leave."""
    made = facts.diagnosis.traceview or "version not recorded"
    by = f"_From here on a tool wrote this: traceview {escape(made)}, from a recorded run._"
    cut = "\n\n_The rest has no room here; `report.html` in the archive has all of it._\n"
    pages = [
        part if "```" in part else re.sub(r"(?m)^#{2,3} ", "#### ", part)
        for part in parts(facts.diagnosis)
    ]
    limit = min(room - len(by) - 10, _DIAGNOSIS)
    return f"---\n\n{by}\n\n{within_limit(pages, cut, limit)}"


def first_failing(results: Results | None, ladder: Mapping[str, str] | None = None) -> str | None:
    """The first backend of torch's ladder that fails, where it was tried and those before hold."""
    tried = {
        _backend(trial): trial.verdict in _BROKEN for trial in (results.trials if results else ())
    }
    failing = {backend: said == FAILS for backend, said in (ladder or {}).items()} | tried
    for stage in STAGES:
        if stage not in failing:
            return None
        if failing[stage]:
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
        [
            code(f"backend={stage}"),
            escape(adds),
            _outcome(tried.get(stage), facts.ladder.get(stage)),
        ]
        for stage, adds in STAGES.items()
    ]
    others = [trial for trial in trials if _backend(trial) not in STAGES]
    rows += [
        [code(" ".join((trial.name, *trial.arguments))), "", _outcome(trial)]
        for trial in others[:_ROWS]
    ]
    shown = [table(("Setting", "What it adds to the one before", "Outcome"), rows)]
    stage = first_failing(facts.results, facts.ladder)
    if stage is not None and TRACKERS[facts.form].labels:
        first = f"{code(stage)} is the first backend that fails"
        shown.append(f"Suggested label: {code(_LABELS[stage])}, since {first}.")
    known = {*tried, *facts.ladder}
    if facts.diagnosis.job is None and any(stage not in known for stage in STAGES):
        if facts.diagnosis.verdict.outcome == "failed":
            shown.append(
                "The script fails, so `traceview sweep` can't time its steps: `traceview ticket"
                " --reproduce` runs it with each of these; or set `backend=` in its call of"
                " torch.compile, run it, and write down which of them fail."
            )
        else:
            script = shlex.join(facts.command)
            commands = [f"traceview sweep --backends ladder {script}"]
            if not others:
                modes = "--modes default,reduce-overhead,max-autotune --dynamic none,true,false"
                commands.append(f"traceview sweep {modes} {script}")
            shown += ["These commands fill in what was not run:", fenced("\n".join(commands), "sh")]
    return _under("Which backend fails", shown)


def _under(title: str, shown: list[str]) -> str:
    return "\n\n".join((f"#### {title}", *(each.strip() for each in shown)))


def _outcome(trial: Trial | None, said: str | None = None) -> str:
    """Of a trial, or what the script did (``said``)."""
    if trial is None:
        return escape(said, 300) if said else "not run"
    words = [" ".join(trial_words.VERDICTS[trial.verdict]), trial_words.gain(trial)]
    words += [f"outputs {trial_words.outputs(trial)}" if trial_words.outputs(trial) else ""]
    said = ", ".join(filter(None, words))
    return f"{escape(said)}{': ' + escape(trial.why, 300) if trial.why else ''}"


def _backend(trial: Trial) -> str:
    """The backend of a trial of the ladder; its name, if it is no such trial."""
    alone = trial.settings[0] if len(trial.settings) == 1 and not trial.arguments else ""
    return alone.partition("backend=")[2] if alone.startswith("backend=") else trial.name


def _reproducer(facts: Facts) -> str:
    title = "How to reproduce"
    if facts.diagnosis.job is not None:
        program = _program(facts.reproducer) if facts.reproducer else []
        return _under(title, ["The run was read from logs; its script was not recorded.", *program])
    torchrun = ("torchrun", "--nproc-per-node", str(facts.ranks))
    runner = torchrun if facts.ranks > 1 else ("python",)
    shown = [fenced(shlex.join([*runner, *facts.command]), "sh").strip()]
    sources = [name for name in facts.members if name.startswith("raw/sources/")]
    if sources:
        shown.append(
            f"The script as it ran, without its strings: {', '.join(map(code, sources[:5]))}."
        )
    if facts.reproducer is not None:
        shown += _program(facts.reproducer)
    script = shlex.join(facts.command)
    if facts.reproducer is None or facts.reproducer.kind == "script":
        if any(row.outcome == "failed" for row in facts.diagnosis.compiles):
            after = f"TORCHDYNAMO_REPRO_AFTER=aot TORCHDYNAMO_REPRO_LEVEL=2 python {script}"
            shown.append(f"torch itself may write a shorter one: {code(after)}.")
        elif any(each.differences for each in facts.diagnosis.outputs):
            bisect = code(f"traceview accuracy --bisect {script}")
            shown.append(f"{bisect} may write a shorter one.")
    found, install = facts.reproducer, "newest/bin/pip install torch"
    if found is not None and found.kind != "script" and found.text:
        run = f"newest/bin/python {REPRODUCER}"
    else:
        install += "  # and what the script needs"
        run = f"traceview diagnose --python newest/bin/python {script}"
    version = facts.diagnosis.environment.get("torch_version")
    ran = f"torch {escape(str(version))}" if version else "one version of torch"
    shown += [
        f"It ran with {ran} only; these commands show whether the newest release has the fault:",
        fenced("\n".join(("python -m venv newest", install, run)), "sh"),
    ]
    return _under(title, shown)


def _program(found: Reproducer) -> list[str]:
    """Which kind the reproducer is, how often it showed the fault, what it printed; its text."""
    what = _KINDS[found.kind]
    if not found.times:
        said = "It was not run: `traceview ticket --reproduce` runs it."
    elif found.shown:
        said = f"It reproduces {found.shown} of {found.times} times, each in a new process."
    elif found.before:
        said = "It shows the fault only with the strings that were taken out of it."
    else:
        said = "It did not show the fault in a new process."
    shown = [f"**Reproducer:** {what}. {said}"]
    if found.printed and found.times:
        shown.append(f"It printed {code(found.printed, 300)}.")
    rows = [[_KINDS[kind], prose(why, 300)] for kind, why in found.passed_over]
    if rows:
        body = table(("Tried before", "Why it is not this"), rows)
        shown.append(details("Other reproducers that were tried", body).strip())
    if found.text:
        body = fenced(found.text, "python", _CODE)
        if len(found.text) > _CODE:
            body += f"\nAll of it is in `{REPRODUCER}` in the archive.\n"
        shown.append(details(REPRODUCER, body).strip())
    return shown


def _duplicates(facts: Facts) -> str:
    words, where = signature(facts), TRACKERS[facts.form].repository
    if not words or not where:
        return ""
    address = f"https://github.com/{where}/issues?q={quote_plus(f'is:issue {words}')}"
    return f"Issues with the same signature: <{address}>"


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
    return _under("What is attached", shown)


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


def _error_here(facts: Facts) -> str:
    return _under("Error", [_error(facts)])


def _versions(facts: Facts) -> str:
    if facts.versions:
        body = fenced(facts.versions, "text", _LOG)
        if len(facts.versions) > _LOG:
            body += "\nAll of it is in `collect_env.txt` in the archive.\n"
        return details(f"The output of <code>python -m {facts.versions_by}</code>", body)
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


TRACKERS: dict[Form, Tracker] = {
    "pytorch": Tracker(
        (
            (
                "🐛 Describe the bug",
                (_OWN_WORDS, _found, _ablation, _reproducer, _duplicates, _attached),
            ),
            ("Error logs", (_error,)),
            ("Versions", (_versions,)),
        ),
        repository="pytorch/pytorch",
        labels=True,
    ),
    "vllm": Tracker(
        (
            ("Your current environment", (_versions,)),
            (
                "🐛 Describe the bug",
                (_OWN_WORDS, _found, _error_here, _reproducer, _ablation, _duplicates, _attached),
            ),
            ("Before submitting a new issue...", (_SEARCHED,)),
        ),
        repository="vllm-project/vllm",
        title="[Bug]:",
        versions=("vllm.collect_env", COLLECT_ENV),
    ),
    "transformers": Tracker(
        (
            ("System Info", (_versions,)),
            ("Who can help?", (_WHO,)),
            ("Information", (_SCRIPTS,)),
            ("Tasks", (_TASKS,)),
            (
                "Reproduction",
                (_OWN_WORDS, _found, _reproducer, _error_here, _ablation, _duplicates, _attached),
            ),
            ("Expected behavior", (_EXPECTED,)),
        ),
        repository="huggingface/transformers",
        versions=(
            "transformers.cli.transformers env",
            "transformers.commands.transformers_cli env",
            COLLECT_ENV,
        ),
    ),
    "generic": Tracker(
        (
            ("What happened", (_OWN_WORDS, _found, _ablation, _reproducer, _attached)),
            ("Error", (_error,)),
            ("Versions", (_versions,)),
        )
    ),
}

"""Commands that try remedies: ``traceview try`` and ``traceview sweep``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from traceview.cli.again import inside, run_folder, run_of
from traceview.cli.options import PASS_ON, TargetCommand, collecting, in_seconds, targeting
from traceview.cli.scripts import INTERRUPTED, interrupted
from traceview.errors import UsageError
from traceview.torchtext.stages import STAGES

if TYPE_CHECKING:
    from traceview.cli.console import Console
    from traceview.collectors.trials import How, Trials
    from traceview.diagnosis import Diagnosis
    from traceview.rules.choice import Choice
    from traceview.run import Run
    from traceview.trials import NotTried, Plan, Remedy, Results
    from traceview.trials.model import Baseline, Trial
    from traceview.trials.rounds import Ask, AskApart

F = TypeVar("F", bound=Callable[..., Any])

#: The recommendation gains less than --require-gain.
TOO_LITTLE = 1
FAILED = 3
#: Facts of the environment that a table of results is worth nothing without.
_FACTS = (
    *("torch_version", "triton_version", "cuda_version", "python_version"),
    *("platform", "device_name", "cpu_threads"),
)

_BUDGET = click.option(
    "--budget",
    default="10m",
    show_default=True,
    callback=in_seconds,
    metavar="TIME",
    help="Time for all trials, such as 90s, 10m or 1h; the diagnosis before them not counted.",
)
_REQUIRE = click.option(
    "--require-gain",
    type=click.FloatRange(0, min_open=True),
    metavar="X",
    help="Exit with 1 unless the recommendation's ratio, its interval's lower end, is at least X.",
)
_JSON = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the results as JSON; a script's own stdout goes to stderr.",
)
_OPEN = click.option("--open", "open_page", is_flag=True, help="Open trials.html in the browser.")
_JOB = click.option(
    "--job-steps", type=click.IntRange(1), metavar="N", help="Steps of the real job."
)
_SELECT = click.option(
    "--select", multiple=True, metavar="RULES", help="Diagnose by these rules only."
)
_IGNORE = click.option("--ignore", multiple=True, metavar="RULES", help="Leave these rules out.")


def _trying(function: F) -> F:
    """Options of both commands."""
    for option in reversed((_BUDGET, _REQUIRE, _JSON, _OPEN, _JOB, _SELECT, _IGNORE)):
        function = option(function)
    return function


@click.command("try", cls=TargetCommand, context_settings=PASS_ON)
@click.option(
    "--only",
    multiple=True,
    metavar="WHAT",
    help="Try only these: rules (names, codes, families) and settings, comma-separated. Settings"
    " of one trial are joined by +: `mode=max-autotune-no-cudagraphs+dynamic=False`.",
)
@click.option(
    "--patch",
    "patches",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Try this change of yours, a unified diff of one file; with --only, next to those. It may"
    " be given several times.",
)
@click.option(
    "--apply",
    "apply_number",
    type=click.IntRange(1),
    metavar="N",
    help="Write the patch of trial N of the run folder's results into the file; try nothing.",
)
@_trying
@collecting
@targeting
def try_command(
    only: tuple[str, ...],
    patches: tuple[Path, ...],
    apply_number: int | None,
    **options: Any,  # noqa: ANN401 (click's options)
) -> None:
    """Diagnose SCRIPT, then try what the findings advise, the most promising first.

    Each remedy runs in blocks that alternate with the script as it is, and is accepted if a step is
    faster beyond the interval and the outputs agree, or if it sets wrong results right. No file of
    yours is changed. A run folder of `traceview diagnose` in place of SCRIPT continues from there.

    \b
    traceview try train.py
    traceview try --only rc-dynamic-false,mode=max-autotune-no-cudagraphs train.py
    traceview try --patch my.diff train.py
    traceview try traceview-train

    Exit codes: 0, 1 (less than --require-gain), 2 (usage error), 3 (the script failed), 4 (nothing
    to analyse), 130 (interrupted).
    """
    if apply_number is not None:
        from traceview.cli.patching import apply_trial

        click.echo(apply_trial(apply_number, options["module"], options["target"]))
        return
    from traceview.cli.patching import own_patch

    words = tuple(word.strip() for words in only for word in words.split(",") if word.strip())
    own = [own_patch(path) for path in patches]

    def plan(found: Diagnosis, choice: Choice, run: Run, budget_s: float) -> Plan:
        from traceview.trials import Plan

        remedies, spare = ([], []) if own and not words else _wanted(words, found, choice, run)
        return Plan(
            (*own, *remedies),
            "compiled",
            budget_s,
            tuple(spare),
            compiles=found.verdict.outcome != "not_compiled",
            fails=found.verdict.outcome == "failed",
            known=() if words else _before(run, "compiled"),
        )

    code = _carry_out(plan, check=lambda choice: _named(words, choice), **options)
    click.get_current_context().exit(code)


@click.command("sweep", cls=TargetCommand, context_settings=PASS_ON)
@click.option("--modes", metavar="MODES", help="Modes of torch.compile: `default,max-autotune`.")
@click.option("--dynamic", metavar="VALUES", help="Values of dynamic=: `none,true,false`.")
@click.option(
    "--backends",
    metavar="NAMES",
    help="Backends: `eager,aot_eager,inductor`, or `ladder` for all of torch's four; also the"
    " script with fullgraph=True.",
)
@click.option(
    "--args",
    "arguments",
    metavar="ARGS",
    help='Arguments of the script with several values each: "--batch 1,8,32 --seq 128,512". Each'
    " combination runs in a process of its own.",
)
@click.option(
    "--keep-debug",
    is_flag=True,
    help="Keep the folders of TORCH_COMPILE_DEBUG, one for each trial, in the run folder.",
)
@_trying
@collecting
@targeting
def sweep_command(
    modes: str | None,
    dynamic: str | None,
    backends: str | None,
    arguments: str | None,
    keep_debug: bool,
    **options: Any,  # noqa: ANN401 (click's options)
) -> None:
    """Measure SCRIPT in several modes, with dynamic shapes or not, or with several backends.

    Each of them, in all combinations, runs in blocks that alternate with eager ones; with --args,
    for each combination of the script's arguments. In place of SCRIPT, the run folder of
    `traceview diagnose` continues from there.

    \b
    traceview sweep --modes default,reduce-overhead,max-autotune --dynamic none,true train.py
    traceview sweep --backends ladder train.py
    traceview sweep --args "--batch 1,8,32 --seq 128,512" bench.py
    """
    axes = [
        _axis("backend", ",".join(STAGES) if backends == "ladder" else backends),
        _axis("mode", modes),
        _axis("dynamic", dynamic),
    ]
    if not any(axes) and arguments is None:
        fact = "Nothing to sweep over was given."
        remedy = (
            "Put --modes default,max-autotune, --dynamic none,true, --backends ladder or --args"
            ' "--batch 1,8" before the script.'
        )
        raise UsageError(fact, remedy, slug="no-axis")
    words: list[tuple[str, ...]] = [()]
    if arguments is not None:
        from traceview.trials import combinations

        try:
            words = combinations(arguments)
        except ValueError as error:
            fact = f"--args can't be used: {str(error).lower()}."
            remedy = 'Separate values by commas: --args "--batch 1,8,32 --seq 128,512".'
            raise UsageError(fact, remedy, slug="args") from error

    def plan(found: Diagnosis, _choice: Choice, run: Run, budget_s: float) -> Plan:
        from msgspec.structs import replace

        from traceview.diagnosis.tree import everyone
        from traceview.trials import Plan, named, swept

        remedies = swept(*axes)
        if backends:
            remedies.append(named(("fullgraph=True",)))
        return Plan(
            tuple(replace(each, arguments=own) for own in words for each in remedies),
            "eager",
            budget_s,
            together=False,
            on_gpu=(name != "cpu") if (name := found.environment.get("device_name")) else None,
            launch_bound=any(each.rule == "ap-launch-bound" for each in everyone(found.findings)),
            known=_before(run, "eager"),
        )

    code = _carry_out(plan, first=words[0], keep_debug=keep_debug, **options)
    click.get_current_context().exit(code)


def _axis(name: str, values: str | None) -> list[str]:
    """Settings of one axis: ``dynamic=True`` for the word ``true``."""
    literal = {"none": "None", "true": "True", "false": "False"}
    words = [word.strip() for word in (values or "").split(",") if word.strip()]
    return [f"{name}={literal.get(word.lower(), word)}" for word in dict.fromkeys(words)]


MakePlan = Callable[["Diagnosis", "Choice", "Run", float], "Plan"]


def _carry_out(
    make_plan: MakePlan,
    *,
    module: str | None,
    target: tuple[str, ...],
    budget: float,
    require_gain: float | None,
    as_json: bool,
    open_page: bool,
    job_steps: int | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    first: tuple[str, ...] = (),
    keep_debug: bool = False,
    check: Callable[[Choice], object] = lambda _: None,
    **collecting: Any,  # noqa: ANN401 (click's options)
) -> int:
    """Diagnose, try, write, print; returns the exit code.

    ``first``: arguments that a new run has on top, and the trials' processes have not. ``check``
    raises a UsageError before anything runs.
    """
    from traceview.cli.console import Console, stdout_color, stdout_width
    from traceview.cli.pipeline import Wanted, diagnosed
    from traceview.collectors.trials import How, Trials
    from traceview.contracts import text_of
    from traceview.reports.trials import terminal
    from traceview.trials import to_json
    from traceview.words.text import one_line

    wanted = Wanted(as_json, False, False, job_steps, select, ignore)
    choice, console = wanted.choice_before(), Console()
    check(choice)
    again = run_folder(module, target) is not None
    if not again and (target or module):
        target = (*target, *first)
    run, options = run_of(module, target, as_json=as_json, console=console, **collecting)
    if first and not again:
        options = replace(options, args=options.args[: -len(first)])
    with Trials(options, run, console) as trials:
        console.say("reading the logs")
        found, unwritten = diagnosed(run, wanted, choice, refresh=not again)
        if unwritten is not None:
            raise unwritten
        console.say(one_line(found.verdict.sentence))
        click.echo(f"report: {run.folder / 'report.html'}", err=True)
        plan = make_plan(found, choice, run, budget)
        how = How(plan.baseline == "eager" or options.warm, keep_debug)
        made = _tried(plan, found, run, _doors(trials, plan.baseline, console, how))
    console.progress(None)
    color = stdout_color()
    if as_json:
        click.echo(text_of(to_json(made)))
    else:
        click.echo(terminal(made, width=stdout_width(), color=color), color=color)
    page = _write(run, made, found)  # what was measured is printed even if the disk is full
    if (patch := made.recommended and made.recommended.patch) and not as_json:
        number = next(n for n, trial in enumerate(made.trials, 1) if trial.patch == patch)
        command = shlex.join(["traceview", "try", "--apply", str(number), str(run.folder)])
        click.echo(f"write the patch into the file: {command}")
    click.echo(f"results: {page}", err=as_json)
    if open_page and click.launch(page.resolve().as_uri()) != 0:
        click.echo("traceview: No browser can be started here; open it by hand.", err=True)
    if found.verdict.outcome == "failed" and not any(trial.ratio for trial in made.trials):
        return FAILED
    if interrupted(run) or any(row.why == "interrupted" for row in made.not_tried):
        return INTERRUPTED
    best = made.recommended
    enough = require_gain is None or (best is not None and best.interval[0] >= require_gain)
    return 0 if enough else TOO_LITTLE


def _tried(plan: Plan, found: Diagnosis, run: Run, doors: tuple[Ask, AskApart]) -> Results:
    """What came of ``plan``, as the record that is kept."""
    import msgspec

    from traceview import __version__
    from traceview.trials import Results, results
    from traceview.trials.judging import first_broken, outside_of_steps
    from traceview.trials.rounds import Tried
    from traceview.words.text import one_line

    cold = next((record.ending.kind for record in run.manifest.passes), None)
    stopped = cold if cold == "interrupted" else None
    combinations = dict.fromkeys(remedy.arguments for remedy in plan.remedies)
    if found.verdict.outcome == "failed" and not any(combinations) and not stopped:
        mine = [r for r in plan.remedies if r.fixes == "failure" or not r.rules]
        rest = [r.untried("the script failed") for r in plan.remedies if r not in mine]
        plan = msgspec.structs.replace(
            plan,
            remedies=tuple(msgspec.structs.replace(each, fixes="failure") for each in mine),
            spare=(*rest, *plan.spare),
        )
    if stopped:
        left = tuple(remedy.untried(stopped) for remedy in plan.remedies)
        tried = Tried((), None, (*left, *plan.spare))
    else:
        with inside(run.manifest.cwd):
            tried = results(plan, *doors)
    facts = {name: found.environment.get(name) for name in _FACTS}
    notes = [*tried.notes, *outside_of_steps(tried.trials, found.regions)]
    if any(trial.debug for trial in tried.trials):
        notes.append("Compile seconds include writing the debug folders.")
    for own in combinations if plan.baseline == "eager" else ():
        if broken := first_broken(each for each in tried.trials if each.arguments == own):
            notes.append(f"{' '.join((*own, ''))}{broken}.")
    first = " ".join(next(iter(combinations), ()))
    return Results(
        target=found.target.removesuffix(f" {first}") if first else found.target,
        created=found.created,
        traceview=__version__,
        baseline=plan.baseline,
        budget_seconds=plan.budget_s,
        environment={k: None if v is None else one_line(str(v), 200) for k, v in facts.items()},
        trials=tried.trials,
        recommended=tried.recommended,
        not_tried=tried.not_tried,
        notes=tuple(notes),
        eager_ms=found.verdict.eager_ms,
        compiled_ms=found.verdict.compiled_ms,
        speedup=found.verdict.speedup,
        speedup_interval=found.verdict.speedup_interval,
    )


def _doors(trials: Trials, baseline: Baseline, console: Console, how: How) -> tuple[Ask, AskApart]:
    """How a round of trials is run, and a process of its own: the only doors into the collector."""
    from traceview.collectors.trials import Asked, failure
    from traceview.trials.rounds import Process, block_seconds
    from traceview.words import numbers as fmt

    def ask(remedies: Sequence[Remedy], seconds: float) -> Process:
        names = ", ".join(remedy.name for remedy in remedies)
        number, own = fmt.plural(len(remedies), "trial"), remedies[0].arguments
        with_them = f" with {' '.join(own)}" if own else ""
        console.say(f"{number}{with_them}, for {fmt.seconds(seconds)} at most: {names}")
        raw, ending = trials.carry_out(
            [Asked(remedy.name, remedy.settings, remedy.patch) for remedy in remedies],
            seconds=block_seconds(seconds, len(remedies)),
            baseline=baseline,
            timeout_s=seconds,
            how=replace(how, arguments=own),
        )
        return Process(raw, ending.kind, failure(ending, raw))

    def apart(
        remedy: Remedy | None, seconds: float, kind: Literal["timed", "checked", "eager"]
    ) -> Process:
        asked = Asked(remedy.name, remedy.settings, remedy.patch) if remedy else None
        usual = "the script in eager" if kind == "eager" else "the script as it is"
        console.say(f"a process of its own: {remedy.name if remedy else usual}")
        part = block_seconds(seconds, 1)
        how = {"eager": kind == "eager", "checked": kind == "checked"}
        raw, ending = trials.carry_out_apart(asked, seconds=part, timeout_s=seconds, **how)
        return Process(raw, ending.kind)

    return ask, apart


def _wanted(
    words: Sequence[str], found: Diagnosis, choice: Choice, run: Run
) -> tuple[list[Remedy], list[NotTried]]:
    """The remedies of the findings, or only those that ``words`` name; and what has none."""
    from traceview.diagnosis.excerpts import source_reader
    from traceview.parse import load_or_parse
    from traceview.trials import Remedy, offered

    cwd, read = run.manifest.cwd, source_reader(run, load_or_parse(run))
    if not words:
        return offered(found.findings, cwd, read=read)
    rules, asked = _named(words, choice)
    remedies, spare = offered(found.findings, cwd, rules, read)
    seen = {rule for remedy in remedies for rule in remedy.rules}
    seen |= {rule for row in spare for rule in row.rules}
    silent = [
        Remedy(rule, rules=(rule,)).untried("this rule has no finding in this run")
        for rule in sorted(rules - seen)
    ]
    offers = {frozenset(remedy.settings) for remedy in remedies}
    asked = [remedy for remedy in asked if frozenset(remedy.settings) not in offers]
    return [*asked, *remedies], [*spare, *silent]


def _before(run: Run, baseline: Baseline) -> tuple[Trial, ...]:
    """The trials of ``run`` so far, if they were interrupted or some came to no verdict."""
    from traceview.errors import NothingToAnalyse
    from traceview.json_errors import NOT_JSON
    from traceview.trials import from_json
    from traceview.trials.model import RESULTS

    try:
        made = from_json(json.loads((run.folder / RESULTS).read_bytes()))
    except (OSError, NothingToAnalyse, *NOT_JSON):
        return ()
    unfinished = any(row.settings or row.patch for row in made.not_tried)
    return made.trials if unfinished and made.baseline == baseline else ()


def _named(words: Sequence[str], choice: Choice) -> tuple[set[str], list[Remedy]]:
    """The rules and settings of ``--only``; UsageError where a word is neither."""
    from traceview.collectors.child.settings import parse
    from traceview.rules.choice import did_you_mean, matching
    from traceview.trials import named
    from traceview.trials.remedies import JOINT

    rules: set[str] = set()
    asked: list[Remedy] = []
    for word in words:
        matched = matching(choice.installed.rules, word)
        rules |= {rule.name for rule in matched}
        if not matched:
            settings = [part.strip() for part in word.split(JOINT)]
            for part in settings:
                try:
                    parse(part)
                except ValueError as error:
                    fact = f"--only: {part!r} is neither a rule nor a setting."
                    near = did_you_mean(choice.installed.rules, part)
                    remedy = f"{near} Settings are written NAME=VALUE, such as mode=max-autotune."
                    raise UsageError(fact, remedy.strip(), slug="only") from error
            asked.append(named(settings))
    return rules, asked


def _write(run: Run, made: Results, found: Diagnosis) -> Path:
    """Write ``trials.json``, its page, both as tables, and the report again; the page's path."""
    from traceview.cli.pipeline import written
    from traceview.contracts import text_of
    from traceview.reports import html as report
    from traceview.reports import trials as forms
    from traceview.reports.trials.words import by_rule
    from traceview.trials import to_json
    from traceview.trials.model import RESULTS

    html = run.folder / "trials.html"
    files = {
        run.folder / RESULTS: text_of(to_json(made)) + "\n",
        html: forms.html(made),
        run.folder / "trials.md": forms.markdown(made),
        run.folder / "trials.csv": forms.csv(made),
        run.folder / "report.html": report.render(found, by_rule(made)),
    }
    if (error := written(files)) is not None:
        raise error
    return html

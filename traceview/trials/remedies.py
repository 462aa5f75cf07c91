"""Which remedies to try, in which order, and the code that sets them.

A finding offers settings, or the diff of one of the user's lines, and changes that follow from it
(`traceview.trials.edits`); where several offer the same, it is tried once. First comes what a
finding expects the most of for what it takes to try.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import PurePath
from typing import cast

import msgspec
from msgspec.structs import replace

from traceview.derive.syntax import ReadSource
from traceview.rules.finding import THE_END, Finding
from traceview.torchtext.frames import NOTEBOOK_CELL
from traceview.trials.edits import compiled_as_well, edits
from traceview.trials.model import Fixes, NotTried
from traceview.words.names import at_line
from traceview.words.ways import WAYS, Way

#: Settings of one trial, as ``--only`` takes them.
JOINT = "+"
#: The remedy without a setting.
AS_IT_IS = "as the script compiles"
NO_REMEDY = (
    "no remedy can be tried for this finding: its advice is no setting and no change of one line"
)
#: Compiling with autotuning, or one variant after the other, takes several times as long.
_SLOW_TO_COMPILE = re.compile(
    r"mode=max-autotune|max_autotune|coordinate_descent_tuning|recompile_limit|cache_size_limit"
)
_SLOW_COST = 4.0
#: Rules whose evidence is a call that was compiled for it, so that blocks in one process will do.
_AFRESH = ("acc-backend-bug", "acc-low-precision")
_HEADER = re.compile(r"^--- [^\n]*\n\+\+\+ [^\n]*\n")
CUDAGRAPH_MEMORY = (
    "memory: cudagraphs keep their pool, and a call overwrites the results of the one before"
)
AUTOTUNING = "compile time: kernels are timed while compiling"
#: What a setting costs in something other than time, by the beginning of the setting.
_PRICES = {
    r"float32_matmul_precision=(high|medium)|torch\.backends\..*allow_tf32=True": (
        "precision: float32 products are computed in TF32 or bfloat16"
    ),
    r"autocast=": "precision: products are computed in the lower precision",
    r"mode=(reduce-overhead|max-autotune$)|.*triton\.cudagraphs=True": CUDAGRAPH_MEMORY,
    r"mode=max-autotune|.*max_autotune|.*coordinate_descent_tuning": AUTOTUNING,
    r"guards=skip": "unsafe: if a module or global changes, results are wrong without a message",
    r".*\bfreezing=True": "later changes of the weights are not seen",
    r"no_grad|inference_mode": "results carry no gradients",
    r".*(recompile_limit|cache_size_limit)=": "compile time: one more compile for each variant",
    r".*activation_memory_budget=": "time for memory: the backward computes more again",
    r"pad=": "work: what is padded is computed as well",
    r"stance=": "compile time: a call that fits nothing compiled waits while it is compiled",
    r"deterministic_debug_mode=default": "results may differ from one run to the next",
    r"detect_anomaly=False|.*nan_asserts=False": "NaN and infinity are not looked for",
}
_ARGUMENTS = ("mode", "dynamic", "backend", "fullgraph")
_OPTIONS = "options."
_VARIABLE = "env."
_GUARDS = '"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe'
_AROUND = "  # around the compiled calls"
_LINES = {
    "float32_matmul_precision": "torch.set_float32_matmul_precision({1})",
    "num_threads": "torch.set_num_threads({1})",
    "deterministic_debug_mode": "torch.use_deterministic_algorithms(False)",
    "detect_anomaly": "torch.autograd.set_detect_anomaly({1})",
    "no_grad": f"with torch.no_grad():{_AROUND}",
    "inference_mode": f"with torch.inference_mode():{_AROUND}",
    "autocast": "with torch.autocast(x.device.type, dtype=torch.{0}):" + _AROUND,
    "sdpa": "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.{0}):" + _AROUND,
    "channels_last": (
        "model = model.to(memory_format=torch.channels_last)\n"
        "x = x.to(memory_format=torch.channels_last)  # inputs of 4 dimensions"
    ),
    "pad": "# before the call pad {0} (argument:dimension:sizes) with zeros; slice its outputs",
    "eager": "# {0} stays in eager: take its torch.compile away",
    "stance": "torch.compiler.set_stance({1})  # in place of the stance that is set there",
    "compile": "{0} = torch.compile({0})  # or @torch.compile above its definition",
    "blocks": (
        "for module in model.modules():  # in place of torch.compile(model)\n"
        "    if type(module).__name__ == {1}:\n"
        "        module.compile()"
    ),
    "torch.backends.mha._is_fastpath_enabled": "torch.backends.mha.set_fastpath_enabled({1})",
}


class Remedy(msgspec.Struct, frozen=True):
    """Something to try: ``settings``, all of them together, or a ``patch`` of one file, or both.

    ``rules`` are those whose findings offer it, with what they expect of it in ms per step and, for
    the start, in seconds; None: no finding gives that figure. ``costs``: what the patch costs.
    ``alone``: blocks don't show what it saves, whole processes do. ``arguments`` of the script that
    it is tried with, after its own. ``fixes``: what a finding that offers it says is wrong, if that
    is not time; ``afresh``: newly compiled code shows it.
    """

    name: str
    settings: tuple[str, ...] = ()
    patch: str | None = None
    rules: tuple[str, ...] = ()
    predicted_ms: float | None = None
    predicted_s: float | None = None
    costs: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    alone: bool = False
    fixes: Fixes | None = None
    afresh: bool = False

    @property
    def price(self) -> tuple[str, ...]:
        """What it costs in something other than time."""
        found = (
            text
            for setting in self.settings
            for pattern, text in _PRICES.items()
            if re.match(pattern, setting)
        )
        ways = (way.price for _, way in map(_way_of, self.settings) if way and way.price)
        return tuple(dict.fromkeys((*found, *ways, *self.costs)))

    @property
    def outside(self) -> bool:
        """Whether it can be tried in a process of its own, where it can't be switched in one."""
        return self.patch is not None or any(each.startswith("env.") for each in self.settings)

    @property
    def weight(self) -> tuple[bool, bool, float, float]:
        """What it is expected to gain over what it costs to try; the least comes first.

        What is wrong comes before what is slow.
        """
        slow = any(_SLOW_TO_COMPILE.search(setting) for setting in self.settings)
        cost = _SLOW_COST if slow else 1.0
        return (
            self.fixes is None,
            self.predicted_ms is None,
            -(self.predicted_ms or 0.0) / cost,
            -(self.predicted_s or 0.0) / cost,
        )

    def untried(self, why: str) -> NotTried:
        """That it has no verdict."""
        return NotTried(
            name=self.name,
            rules=self.rules,
            settings=self.settings,
            patch=self.patch,
            why=why,
            arguments=self.arguments,
        )


def named(settings: Iterable[str]) -> Remedy:
    """The remedy of these settings, all of them together."""
    kept = tuple(dict.fromkeys(settings))
    return Remedy(JOINT.join(kept), kept)


def offered(
    findings: Iterable[Finding],
    cwd: str,
    rules: Collection[str] | None = None,
    read: ReadSource | None = None,
) -> tuple[list[Remedy], list[NotTried]]:
    """The remedies of ``findings`` and their symptoms, best first; findings that offer none.

    ``cwd``: paths of diffs are relative to it. ``rules``: only findings of these count. ``read``:
    the user's sources, of which patches are made.
    """
    found: dict[tuple[frozenset[str], str | None], Remedy] = {}
    without: dict[str, NotTried] = {}
    for finding in findings:
        for owner, remedy in _within(finding, cwd, read or (lambda _: None)):
            if rules is not None and owner not in rules:
                continue
            if remedy is None:
                without.setdefault(owner, Remedy(owner, rules=(owner,)).untried(NO_REMEDY))
                continue
            key = (frozenset(remedy.settings), remedy.patch)
            known = found.get(key)
            if known:  # their costs may overlap: the larger one counts
                remedy = replace(
                    known,
                    rules=tuple(dict.fromkeys((*known.rules, *remedy.rules))),
                    predicted_ms=_larger(known.predicted_ms, remedy.predicted_ms),
                    predicted_s=_larger(known.predicted_s, remedy.predicted_s),
                    fixes=known.fixes or remedy.fixes,
                )
            found[key] = remedy
    tried = {rule for remedy in found.values() for rule in remedy.rules}
    left = [nothing for rule, nothing in without.items() if rule not in tried]
    # Two patches of one line get names of their own, by which their events are known.
    seen: Counter[str] = Counter()
    for key, remedy in list(found.items()):
        seen[remedy.name] += 1
        if (number := seen[remedy.name]) > 1:
            found[key] = replace(remedy, name=f"{remedy.name} ({number})")
    return sorted(found.values(), key=lambda remedy: remedy.weight), left


def swept(*axes: Sequence[str]) -> list[Remedy]:
    """Every combination of one setting of each of ``axes``; without any, the script as it is."""
    given = [axis for axis in axes if axis]
    return [named(settings) for settings in product(*given)] if given else [Remedy(AS_IT_IS)]


def combinations(arguments: str) -> list[tuple[str, ...]]:
    """``--batch 1,8 --seq=128,512`` as the four lists of words that a script can be given.

    ValueError where no word has several values, or quotes don't match.
    """
    choices: list[list[str]] = []
    for word in shlex.split(arguments):
        option, equals, values = word.partition("=") if word.startswith("-") else ("", "", word)
        kept = [value for value in values.split(",") if value]
        several = "," in values and kept
        choices.append([f"{option}{equals}{value}" for value in kept] if several else [word])
    if all(len(words) == 1 for words in choices):
        raise ValueError("no argument has several values")
    return list(dict.fromkeys(product(*choices)))


def _within(finding: Finding, cwd: str, read: ReadSource) -> Iterator[tuple[str, Remedy | None]]:
    """Rules and what their findings offer, of one finding and its symptoms; None: nothing.

    What takes a symptom away answers its cause, too.
    """
    cost, fixes = finding.whole_cost or finding.cost, cast("Fixes | None", None)
    if finding.is_wrong or finding.cost == THE_END:
        fixes = "results" if finding.is_wrong else "failure"
    afresh = finding.rule in _AFRESH
    own = [replace(each, fixes=fixes, afresh=afresh) for each in _of(finding, cwd, read)]
    below = [pair for each in finding.symptoms for pair in _within(each, cwd, read)]
    answers: list[Remedy | None] = [*own, *(remedy for _, remedy in below if remedy is not None)]
    for remedy in answers or [None]:
        yield (
            finding.rule,
            remedy
            and replace(
                remedy,
                rules=(finding.rule,),
                predicted_ms=cost.ms_per_step,
                predicted_s=cost.seconds,
            ),
        )
    yield from below


def _of(finding: Finding, cwd: str, read: ReadSource) -> list[Remedy]:
    snippet, place = finding.snippet, finding.location
    found = []
    if place and NOTEBOOK_CELL.fullmatch(place.file):  # a cell is no file that a patch fits
        place = None
    if finding.remedy:
        found.append(named(finding.remedy))
    elif snippet and snippet.language == "diff" and snippet.text.startswith("--- ") and place:
        # A diff names a file outside of the folder by its last part only.
        text, file = snippet.text, PurePath(place.file)
        if not (cwd and file.is_relative_to(cwd)):
            text = _HEADER.sub(lambda _: f"--- {file}\n+++ {file}\n", text)
        found.append(Remedy(f"patch {at_line(file.name, place.line)}", patch=f"{text}\n"))
    found += [named([setting]) for setting in compiled_as_well(finding, read)]
    return found + [
        Remedy(
            f"patch {at_line(PurePath(edit.file).name, edit.line)}",
            patch=f"{edit.patch}\n",
            costs=edit.price,
            alone=edit.alone,
        )
        for edit in edits(finding, read, cwd)
    ]


def _larger(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


# -- settings as code ------------------------------------------------------------------------------


def code_of(settings: Iterable[str]) -> tuple[str, ...]:
    """Statements to paste: configuration first, then the call of torch.compile, then contexts."""
    arguments: dict[str, object] = {}
    options: list[str] = []
    before: list[str] = []
    around: list[str] = []
    for setting in settings:
        name, _, text = setting.partition("=")
        value: object = text
        with suppress(ValueError, SyntaxError):  # what is no Python literal is a string
            value = ast.literal_eval(text)
        if name in _ARGUMENTS:
            arguments[name] = value
        elif name.startswith(_OPTIONS):
            options.append(f'"{name.removeprefix(_OPTIONS)}": {_quoted(value)}')
        elif name.startswith(_VARIABLE):
            before.append(
                f"export {name.removeprefix(_VARIABLE)}={shlex.quote(text)}  # in the shell"
            )
        elif name == "guards":
            options.append(_GUARDS)
        elif name == "compile" and text.startswith("torch."):
            before.append(f"{text.rpartition('.')[2]} = torch.compile({text})")
        elif name == "static":
            for argument in text.split("/"):
                call_of = f"torch._dynamo.mark_static_address({argument})"
                if (container := argument.removesuffix("[]")) != argument:
                    mark = "torch._dynamo.mark_static_address"
                    call_of = f"torch.utils._pytree.tree_map({mark}, {container})"
                before.append(f"{call_of}  # once, before the first call")
        elif (known := _way_of(setting))[1]:
            before += [f"# {known[0]}:", *known[1].code.split("\n")]
        elif name in _LINES:
            lines = _LINES[name].format(value, _quoted(value)).split("\n")
            (around if lines[0].startswith("with ") else before).extend(lines)
        else:
            before.append(f"{name} = {_quoted(value)}")
    if options and (mode := arguments.pop("mode", None)) is not None:  # torch takes one of the two
        options.insert(0, f"**torch._inductor.list_mode_options({_quoted(mode)})")
    given = [f"{name}={_quoted(value)}" for name, value in arguments.items()]
    given += [f"options={{{', '.join(options)}}}"] if options else []
    call = [f"torch.compile(..., {', '.join(given)})"] if given else []
    return (*before, *call, *around)


def _way_of(setting: str) -> tuple[str, Way | None]:
    """The operator, and the other way to write it, of ``form=aten.NAME:WAY``; else no way."""
    name, _, text = setting.partition("=")
    operator, _, way = text.partition(":")
    return operator, WAYS.get(way) if name == "form" else None


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) and value.isprintable() else repr(value)

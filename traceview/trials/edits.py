"""Changes of the user's source that follow from a finding: written here and tried, never applied.

Each pattern is one function, in `traceview.trials.inside`, `operators`, `around`, `outside`,
`loops` or `arithmetic`. It gives changes only where the source has exactly that pattern at the
finding's line (or, for what concerns a whole file, in the finding's file), and nothing where it is
in doubt. Whether a change gains anything, and whether the results stay the same, is for the trial
to say.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

import msgspec

from traceview.derive.syntax import ReadSource
from traceview.diagnosis.ruling import unified
from traceview.rules.finding import Finding
from traceview.torchtext.frames import NOTEBOOK_CELL
from traceview.trials import arithmetic, around, inside, loops, operators, outside
from traceview.trials.source import Changes, Source


class Edit(msgspec.Struct, frozen=True):
    """A unified diff of one file, and what the change costs in something other than time.

    ``alone``: blocks can't show what it saves, since that is compiling again and again, or what it
    changes has run before.
    """

    file: str
    line: int
    patch: str
    price: tuple[str, ...] = ()
    alone: bool = False


class Pattern(msgspec.Struct, frozen=True):
    """``changes``: of a source, from a finding's line, each a way to do without the pattern."""

    changes: Callable[[Source, int], Changes]
    price: str = ""
    alone: bool = False


_WHERE = Pattern(inside.choice_by_where, "both sides are computed")
_ASSERTED = Pattern(
    inside.asserted, "the error is a RuntimeError, on a GPU one that ends the process"
)
_NO_EXIT = Pattern(inside.every_iteration, "every iteration of the loop runs")
_QUIET = Pattern(inside.quiet_while_compiling, "compiled code writes no messages")
_OUTSIDE = Pattern(inside.worked_out_outside)
_APPENDED = Pattern(inside.kept_outside)
_ONCE = Pattern(inside.made_once, "memory: what is made is kept for each argument")
_FAKE = Pattern(inside.with_fake, "a result of another shape than the argument's is an error")
_RATE = Pattern(arithmetic.rate_in_tensor)
#: What Dynamo can't start in, and could start around or in the original of.
_ELSEWHERE = (
    Pattern(operators.transform_compiled),
    Pattern(around.as_python, "the module is no TorchScript any more"),
)

_CONVERTED = Pattern(operators.converted_first)
_APPLIED = Pattern(operators.applied_transform)
_UNTIMED = Pattern(operators.untimed, "compiled code records no times")

#: By rule.
PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "acc-dropped-operator": (
        Pattern(around.declared_writes, "compiled graphs in caches don't know it: clear them once"),
    ),
    "acc-unlike-eager": (Pattern(around.traced_each_time),),
    "acc-lost-weights": (Pattern(around.loaded_inside),),
    "cap-fails-compiled": (
        Pattern(around.twice_in_eager, "what is differentiated twice runs in eager"),
    ),
    "gb-data-dependent": (_WHERE, _NO_EXIT, _ASSERTED),
    "gb-frame-skipped": (
        *(_WHERE, _NO_EXIT, _QUIET, Pattern(inside.index_kept)),
        *(*_ELSEWHERE, _ASSERTED, _APPLIED, _UNTIMED),
    ),
    "gb-side-effect-io": (_QUIET,),
    "gb-disabled-hot": (Pattern(inside.enabled_again),),
    "gb-optimizer-or-backward": (Pattern(inside.loss_alone),),
    "gb-unsupported-call": (_OUTSIDE,),
    "gb-dynamic-output-shape": (
        Pattern(inside.masked_sums, "the mask must have the shape of what it masks"),
    ),
    "gb-item": (_APPENDED,),
    "cap-customop-no-fake": (_FAKE,),
    "cap-suppressed-failure": (_FAKE,),
    "cap-cached-function": (Pattern(around.cache_left_alone),),
    "cap-copy-in-eager": (
        Pattern(outside.copy_compiled, "compile time: a copy may compile once more"),
    ),
    "cap-nothing-compiled": (
        Pattern(around.switched_on),
        Pattern(around.stance_for_a_while, "the stance ends with its block"),
        Pattern(around.piece_of_generator),
        Pattern(around.without_mode, "the mode counts nothing"),
        Pattern(around.counted_in_eager),
        Pattern(around.counted_once, "every step counts as the first one"),
        Pattern(around.method_compiled),
        Pattern(around.called_as_module, "hooks of the module run as well"),
        *_ELSEWHERE,
    ),
    "cap-nothing-captured": (*_ELSEWHERE, _APPLIED, _UNTIMED),
    "gd-guard-overhead": (
        Pattern(outside.worked_out_once, "a later change of what it reads is not seen"),
    ),
    "ct-repeated-same-compile": (
        Pattern(around.without_reset, "memory: compiled code is kept", alone=True),
    ),
    "ind-slower-fusion": (Pattern(inside.called_apart),),
    "ind-few-programs": (Pattern(inside.called_apart),),
    "ind-scalar-loop": (Pattern(inside.called_apart), Pattern(operators.laid_out), _CONVERTED),
    "ind-partial-write": (
        *(Pattern(operators.stacked), Pattern(operators.kept_as_rows)),
        *(Pattern(operators.assigned_to_part), Pattern(operators.written_at_offset)),
        Pattern(outside.written_apart),
        Pattern(outside.tensors_of_their_own, "memory: the views are copied", alone=True),
    ),
    "ind-extern-dominated": (
        *(Pattern(around.traced_operator), Pattern(inside.solved_apart)),
        Pattern(arithmetic.distances_by_sums),
        Pattern(arithmetic.in_parts, "torch's ComplexTensor is private, and may change"),
    ),
    "ind-slow-kernel": (Pattern(arithmetic.added_apart, "memory: 1,024 places for each sum"),),
    "cg-moved-input": (Pattern(loops.written_into_data, "values are copied in each call"),),
    "mem-driver-calls": (Pattern(loops.memory_kept, "memory: what is freed stays reserved"),),
    "ap-host-sync": (Pattern(loops.counted_on_device, "sums are tensors"),),
    "ap-launch-bound": (Pattern(inside.condition_by_where, "both sides are computed"),),
    "ap-debug-switch": (
        Pattern(around.without_variable, "torch looks for no errors"),
        Pattern(
            around.with_vectors, "results may differ from one kind of CPU to the next", alone=True
        ),
    ),
    "ind-recomputed": (Pattern(inside.pooled_apart),),
    "ind-whole-copy": (
        Pattern(operators.written_in_place, "the tensor that is passed is changed"),
    ),
    "ind-slice-gradients": (Pattern(loops.taken_at_once),),
    "ind-untrained-weights": (Pattern(around.gradients_off),),
    "ct-compile-in-step": (Pattern(around.compiled_once),),
    "mem-saved-on-host": (
        Pattern(around.saved_on_device, "memory: saved tensors stay on the device"),
    ),
    "ind-slower-library": (Pattern(operators.scattered),),
    "ind-fft-length": (Pattern(arithmetic.fast_length, "a result that is not cut is longer"),),
    "ind-misaligned-copy": (Pattern(operators.copied_first),),
    "ind-unaligned-product": (
        Pattern(operators.copied_first, "memory: the slice is there a second time"),
    ),
    "ind-causal-mask": (
        Pattern(operators.causal_without_mask, "padding that the mask hides is hidden no longer"),
    ),
    "ind-stored-masks": (
        Pattern(arithmetic.kept_by_index, "of equal values one gets the gradient"),
        Pattern(inside.called_apart),
    ),
    "ind-strided-scan": (Pattern(arithmetic.scanned_together),),
    "ind-reverse-jacobian": (Pattern(arithmetic.in_forward_mode),),
    "ind-expanded-product": (Pattern(arithmetic.as_one_product),),
    "ind-plain-attention": (Pattern(arithmetic.without_weights),),
    "ind-wide-attention": (
        Pattern(arithmetic.attention_of_narrow_values, "results have the digits of 16 bits"),
    ),
    "rc-python-constant": (_OUTSIDE, _RATE),
    "rc-limit-hit": (_RATE,),
    "rc-dim-specialized": (_OUTSIDE,),
    "rc-object-identity": (_ONCE,),
    "rc-backend-mismatch": (_ONCE,),
    "rc-container-length": (_APPENDED, _OUTSIDE),
    "ap-promoted-float64": (
        Pattern(arithmetic.cast_where_made, "results have the digits of float32"),
    ),
    "ap-call-overhead": (Pattern(outside.caller_compiled, "compile time: the loop is unrolled"),),
    "ap-not-in-model": (
        Pattern(loops.workers_kept, "memory: the worker processes stay", alone=True),
        Pattern(loops.loaded_by_workers, "random numbers of loaders are others", alone=True),
        Pattern(loops.made_before_loop),
        Pattern(loops.stacked_first),
        Pattern(loops.counted_on_device, "sums are tensors"),
        Pattern(arithmetic.without_autocast, "memory: values of 32 bits"),
        Pattern(loops.groups_merged, "options are no longer a parameter's own", alone=True),
        Pattern(loops.fused_optimizer, alone=True),
        Pattern(outside.remembered, "memory: a result is kept for each argument"),
        Pattern(outside.parsed_once, "memory: a result is kept for each text"),
    ),
}


#: Rules whose operators run in eager outside of what is compiled.
_OUTSIDE_OF_IT = ("ap-not-in-model",)


def compiled_as_well(finding: Finding, read: ReadSource) -> list[str]:
    """Settings that compile the functions which ``finding`` spends its time in, too."""
    given = (finding.location, *finding.also_at) if finding.rule in _OUTSIDE_OF_IT else ()
    places = [each for each in given if each and not NOTEBOOK_CELL.fullmatch(each.file)]
    for place in places:
        found = outside.compiled_too(Source(read(place.file) or ""), place.line)
        if settings := [f"compile={name}" for name in found]:
            return settings
    return []


def edits(finding: Finding, read: ReadSource, cwd: str) -> list[Edit]:
    """What follows from ``finding``; paths of diffs are relative to ``cwd`` if they are below it.

    Of several places of a finding the first one that has the pattern counts.
    """
    given = (finding.location, finding.inside, *finding.also_at)
    places = [each for each in given if each and not NOTEBOOK_CELL.fullmatch(each.file)]
    found: dict[str, Edit] = {}
    for pattern in PATTERNS.get(finding.rule, ()):
        for place in places:
            text = read(place.file) or ""
            source, path = Source(text), PurePath(place.file)
            name = (path.relative_to(cwd) if cwd and path.is_relative_to(cwd) else path).as_posix()
            price = (pattern.price,) if pattern.price else ()
            made = []
            for changes in pattern.changes(source, place.line):
                if (new := source.changed(changes)) is not None:
                    line = source.line_of(min(begin for begin, _, _ in changes))
                    patch = unified(text, new, name)
                    made.append(Edit(place.file, line, patch, price, pattern.alone))
            found |= {edit.patch: edit for edit in made}
            if made:
                break
    return list(found.values())

"""
## What it finds
A `load_state_dict(strict=False)` that leaves tensors out because torch.compile has added
`_orig_mod.` to one side's keys.

## Why it costs
`torch.compile(model)` returns a module around the model: the keys of its state dict begin with
`_orig_mod.`, and those of a model with a compiled submodule have it inside
(`encoder._orig_mod.weight`). With `strict=False`, keys that the other side does not have are left
out without a message. The module keeps the weights that it had, so results are wrong: a target
network is never updated, a resumed training starts from random weights.

## Evidence
The collector compares the missing and unexpected keys that `load_state_dict` returns, and counts
those that are the same without `_orig_mod.`. Keys that are left out for another reason do not
count. A load is not reported if another `load_state_dict` fills in the same tensors before
compiled code is called.

## What to do
Save and load through the module inside: `compiled._orig_mod.state_dict()`,
`compiled._orig_mod.load_state_dict(state)`. Or compile in place with `model.compile()`, which
leaves the keys unchanged. For a checkpoint that exists already, remove `_orig_mod.` from its keys.
Without `strict=False`, torch raises an error that lists the keys.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
- https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile
- torch/_dynamo/eval_frame.py, `OptimizedModule`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._accuracy import RESULT
from traceview.rules.kit import (
    Evidence,
    Finding,
    Row,
    Snippet,
    Tables,
    first_rank,
    from_row,
    line_of,
    plural,
    rows,
    short,
)
from traceview.tables import grouped

CODE = "TV708"
NEEDS = frozenset({"lost_weights"})
SEVERITIES = ("error",)

_PREFIX = "_orig_mod."
_RENAMED = 'state = {key.replace("_orig_mod.", ""): value for key, value in state.items()}'
_IN_PLACE = "Or compile in place with model.compile(), which leaves the keys unchanged."


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each class of module and side whose keys have the prefix."""
    lost = [
        row
        for row in first_rank(rows(tables, "lost_weights"))
        if row["loads"] > (row["loaded_later"] or 0)
    ]
    for found in grouped(lost, "module", "prefixed").values():
        row, place = found[0], line_of(found[0])
        at = f" ({short(place)})" if place else ""
        whole = all(name.startswith(_PREFIX) for name in row["names"])
        what_to_do, code = _advice(row["prefixed"], whole=whole)
        sides = {"given": " of the state dict", "own": f" of {row['module']}"}
        yield Finding(
            code=CODE,
            rule="acc-lost-weights",
            severity="error",
            title=(
                f"load_state_dict(strict=False) loads {row['loaded']:,} of "
                f"{plural(row['tensors'], 'tensor')} into {row['module']}{at}: "
                f"keys of a compiled module {'begin with' if whole else 'contain'} {_PREFIX}"
            ),
            explanation=(
                f"torch.compile(module) adds {_PREFIX} to the keys"
                f"{sides.get(row['prefixed'], '')}, and the other side's keys don't have it. "
                "strict=False leaves out keys that don't match, without a message: "
                f"{row['module']} keeps the weights that it had."
            ),
            cost=RESULT,
            confidence="measured",
            location=place,
            also_at=tuple(each for each in map(line_of, found[1:]) if each and each != place),
            evidence=tuple(map(_left_out, found)),
            what_to_do=what_to_do,
            snippet=Snippet("python", code),
        )


def _left_out(row: Row) -> Evidence:
    place, names = line_of(row), ", ".join(row["names"])
    more = ", …" if row["lost"] > len(row["names"]) else ""
    at = f"{short(place)}: " if place else ""
    text = f"{at}{plural(row['lost'], 'tensor')} left out in {plural(row['loads'], 'load')}"
    return from_row(f"{text} ({names}{more})", "lost_weights", row)


def _advice(prefixed: str, *, whole: bool) -> tuple[str, str]:
    """What to do, and code for it."""
    if prefixed == "own":
        if whole:
            return (
                f"Load into the module inside the compiled one. {_IN_PLACE}",
                "compiled._orig_mod.load_state_dict(state)",
            )
        return (
            "Load before the submodule is compiled. Or compile it in place with "
            "submodule.compile(), which leaves the keys unchanged.",
            "model.load_state_dict(state)\nmodel.submodule.compile()",
        )
    if prefixed == "given" and whole:
        return (
            "Take the state dict from the module inside the compiled one, also when a checkpoint "
            f"is saved. {_IN_PLACE} For a checkpoint that exists already: {_RENAMED}",
            "target.load_state_dict(compiled._orig_mod.state_dict())",
        )
    return (
        f"Remove {_PREFIX} from the keys. Or compile submodules in place with submodule.compile(), "
        "which leaves the keys unchanged.",
        _RENAMED,
    )

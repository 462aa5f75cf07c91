"""The environment that one pass of the target gets: the user's own, and what we need of torch.

TORCH_LOGS grammar: torch/_logging/_internal.py, ``_parse_log_settings``. An unknown name there is a
ValueError at ``import torch``, so only names that the target's torch registers are added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from traceview.collectors.probe import KERNEL_RANGES, PROVENANCE, Target

# output_code and the autotuner's choices are in the structured log or on stderr already.
# inductor_metrics is left to the user: it costs compile time (pytorch/pytorch pull request 153506).
LOGS = ("graph_breaks", "recompiles", "fusion", "schedule", "perf_hints", "cudagraphs")
_SETTINGS = re.compile(r"((\+|-)?[\w\.]+,\s*)*(\+|-)?[\w\.]+?")
_UNSET = ("TORCH_LOGS_FORMAT", "TORCH_LOGS_TRACE_ID_FILTER")
_OURS_INSTEAD = ("TORCH_TRACE", "TORCH_LOGS_OUT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


@dataclass(frozen=True, slots=True)
class Environment:
    """``variables`` for the child, of them ``ours`` (as set), and what the user should know."""

    variables: dict[str, str]
    ours: dict[str, str]
    notes: tuple[str, ...]


def for_pass(user: Mapping[str, str], target: Target, raw: Path, cache: Path) -> Environment:
    """The environment of the pass whose raw folder is ``raw``, with caches under ``cache``."""
    # The bootstrap folder first: its sitecustomize takes itself off again (child/bootstrap). An
    # empty entry would be the working directory, so nothing is joined where there was nothing.
    bootstrap = str(Path(__file__).parent.resolve() / "child" / "bootstrap")
    own_path = user.get("PYTHONPATH")
    ours = {
        "TORCH_TRACE": str(raw / "structured"),
        "TORCH_LOGS_OUT": str(raw / "torch_logs.txt"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TRACEVIEW_CHILD_CONFIG": str(raw / "child.json"),
        "PYTHONPATH": f"{bootstrap}:{own_path}" if own_path else bootstrap,
    }
    if "TEARDOWN_CUPTI" not in user:  # see cupti_is_torn_down in child/window.py
        ours["TEARDOWN_CUPTI"] = "1"
    if "TORCH_DTRACE" in user:  # it would win over TORCH_TRACE; kept on, in our folder
        ours["TORCH_DTRACE"] = ours["TORCH_TRACE"]
    logs = merged_logs(user.get("TORCH_LOGS"), target.log_names)
    if logs:
        ours["TORCH_LOGS"] = logs
    # What only adds to torch's records: a record per kernel, with its lines. A named range per C++
    # kernel call makes the C++ compiler slow (child/marks.py): only where C++ calls the kernels.
    by_cpp = user.get("TORCHINDUCTOR_CPP_WRAPPER") == "1"
    switches = frozenset({PROVENANCE, KERNEL_RANGES} if by_cpp else {PROVENANCE})
    ours.update({name: "1" for name in switches & target.switches if name not in user})
    variables = {name: value for name, value in user.items() if name not in _UNSET} | ours
    notes = [
        f"{name}={user[name]} in your environment was replaced with a path in the run folder."
        for name in _OURS_INSTEAD
        if name in user
    ]
    notes += [
        f"{name} in your environment was ignored, because it changes the format of the logs."
        for name in _UNSET
        if name in user
    ]
    return Environment(variables, ours, tuple(notes))


def merged_logs(own: str | None, known: frozenset[str]) -> str:
    """The user's TORCH_LOGS and the names of ours that this torch knows and they did not name.

    What torch itself refuses, or answers with its help text, is passed on alone and unchanged.
    """
    if (own and _SETTINGS.fullmatch(own) is None) or own in ("help", "+help"):
        return own or ""
    named = user_logs(own)
    added = [name for name in LOGS if name in known and name not in named]
    return ",".join([*([own] if own else []), *added])


def user_logs(own: str | None) -> list[str]:
    """The bare names in the user's TORCH_LOGS."""
    return [name.strip().lstrip("+-") for name in (own or "").split(",") if name.strip()]

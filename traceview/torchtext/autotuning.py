"""What torch says of an autotuned operator: the statistics' JSON, and whose kernel a choice is.

The statistics (``autotune_choices_stats`` of a chromium event, ``Autotune Choices Stats:`` on
stderr) hold num_choices, best_kernel, best_time in ms, … The whole ranking goes to stderr alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_OTHER = re.compile(r"(?:cutlass|cutedsl|cuda_|ck|rocm|decompose_k|contiguous_|nv_universal)", re.I)


def best_choices(stats: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Best kernel, and best Triton kernel where another won: all that the statistics name."""
    best = stats.get("best_kernel")
    for name in ("best_kernel", "best_triton_kernel"):
        choice, is_best = stats.get(name), name == "best_kernel"
        if isinstance(choice, str) and choice and (is_best or choice != best):
            time, details = stats.get(name.replace("kernel", "time")), stats.get(f"{name}_desc")
            if not (isinstance(time, int | float) and -1e18 < time < 1e18):
                time = None
            yield {
                "choice": choice,
                "backend": backend_of(choice),
                "is_best": is_best,
                "time_ms": None if time is None else float(time),
                "details": details if isinstance(details, str) else None,
            }


def backend_of(choice: str) -> str:
    """aten, triton, cpp or other, by the way torch names its candidates."""
    if choice.startswith(("triton_", "triton::")):
        return "triton"
    if choice.startswith(("cpp_", "Cpp")):
        return "cpp"
    return "other" if _OTHER.match(choice) else "aten"

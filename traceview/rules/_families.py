"""Rules that are the causes of the same symptoms."""

from __future__ import annotations

#: One line at which graphs break.
GRAPH_BREAKS = frozenset({
    "gb-item", "gb-data-dependent", "gb-side-effect-io", "gb-frame-skipped",
    "gb-dynamic-output-shape", "gb-unsupported-call", "gb-disabled-hot",
    "gb-optimizer-or-backward",
})  # fmt: skip
#: One thing that changes and has a function compiled again and again.
RECOMPILES = frozenset({
    "rc-dynamic-false", "rc-module-int-attr", "rc-python-constant", "rc-object-identity",
    "rc-container-length", "rc-tensor-meta", "rc-global-state", "rc-param-shape",
    "rc-dim-specialized", "rc-backend-mismatch",
})  # fmt: skip

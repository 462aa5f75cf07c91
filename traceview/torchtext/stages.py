"""What each backend of torch's ladder adds to the one before: where a fault begins.

``backend="eager"`` is Dynamo alone, ``inductor`` the whole compiler
(torch/_dynamo/backends/debugging.py).
"""

from __future__ import annotations

STAGES = {
    "eager": "Dynamo's capture, which runs the graph as it was traced",
    "aot_eager": "AOTAutograd, which takes writes out of the graph",
    "aot_eager_decomp_partition": "decompositions and the split into forward and backward",
    "inductor": "Inductor: its graph passes, its fusions or its generated code",
}

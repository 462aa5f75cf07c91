"""Names of torch's timed phases (``dynamo_timed``) that begin no call of torch.compile's."""

from __future__ import annotations

#: AOTInductor, from a graph to a library; capturing a whole function for torch.export.
AOT_INDUCTOR = "compile_fx_aot"
CAPTURE = "fullgraph_capture"

"""Torch's reasons for leaving two nodes apart, in plain words (``torch/_inductor/scheduler.py``,
``choices.py``, ``codegen/simd.py``), and the setting that decides where there is one."""

from __future__ import annotations

import re

_INDUCTOR = "torch._inductor.config."
#: Pattern of torch's reason → words that complete "not fused, because …", and a setting.
_REASONS: tuple[tuple[str, str, str | None], ...] = (
    (r"intermediate nodes between", "between them runs another kernel that needs the first one's result and feeds the second", None),
    (r"no shared data due to indexing", "they read the same data, but not in the same order", None),
    (r"no shared data", "they read nothing in common, so fusing them would save a launch and no memory traffic", None),
    (r"memory deps did not match", "the second reads the first one's result at other places than it is written to (transposed, shifted or broadcast)", None),
    (r"numel/rnumel mismatch prologue", "what feeds the GEMM loops over another size than the GEMM's input has", None),
    (r"numel/rnumel mismatch \(reduce\)", "they reduce over different sizes", None),
    (r"numel/rnumel mismatch", "they loop over different sizes", None),
    (r"nodes numel(?:/rnumel)? incompatibility", "one is a reduction, and the other loops over sizes that do not match it", None),
    (r"tiling mismatch|invalid tiling for reduction|invalid loop order and tiling", "their best tilings differ", "triton.tiling_prevents_pointwise_fusion, triton.tiling_prevents_reduction_fusion"),
    (r"Nodes are too far away", "they stand far apart in the graph, and keeping data for so long could raise the memory peak", None),
    (r"Fusion will increase peak memory", "fusing them would raise the memory peak", None),
    (r"score_fusion_memory_threshold", "they share so few bytes that torch does not count it worth while", "score_fusion_memory_threshold"),
    (r"exceeds max fusion", "the kernel would hold more operations than torch allows", "max_fusion_size"),
    (r"fusion_prevent_too_many_reads_and_writes", "the kernel would read and write more buffers than torch allows", "max_fusion_unique_io_buffers"),
    (r"device mismatch", "they run on different devices", None),
    (r"will create cycle|node1 must go before node2", "each needs something that runs before the other", None),
    (r"node1 is extern|node2 is extern or nop|node1 is nop", "one of them is a library call, which Inductor can't fuse into", None),
    (r"node1's triton kernel doesn't support|epilogue reads from buffers other", "one of them is the user's own Triton kernel", "epilogue_fusion_user_defined_triton_kernel"),
    (r"uses different buf layouts", "their memory layouts differ", None),
    (r"template epilogue not satisfied", "only pointwise operations can follow a GEMM in its kernel (and epilogue_fusion has to be on)", "epilogue_fusion"),
    (r"multi-output template epilogue", "the template has several results", None),
    (r"prologue fusion turned off", "fusing into a GEMM's input is switched off", "prologue_fusion"),
    (r"prologue fusion only supported for pointwise|template prologue can only fuse functional pointwise", "only pointwise operations without side effects can run while a GEMM reads its input", None),
    (r"template has no allowed prologue|prologue fusion not implemented", "this GEMM kernel can't compute its input on the way", None),
    (r"template prologue can only fuse nodes with a single use", "the GEMM's input is used elsewhere too, so it has to be written anyway", None),
    (r"prologue fusion will not increase amount of bytes", "the GEMM would have to read more bytes than it does now", None),
    (r"prologue fusion will not increase attempt to fuse in padding", "padding inside the GEMM would make its reads unaligned", None),
    (r"must be upcast to fp32 not profitable", "the GEMM computes in 16 bits, and what feeds it needs 32", None),
    (r"register spilling", "the kernel would need more registers than there are (it was tried)", None),
    (r"Split scan cannot fuse", "a split scan can't share a kernel with a reduction", None),
    (r"foreach", "a foreach operation and its neighbour do not match one to one", None),
    (r"grouped node must not be fused", "they belong to a group that torch keeps together", None),
    (r"fusion for buffer explicit disabled", "fusing is switched off for its buffer", None),
    (r"Exception in compiling", "compiling the fused kernel failed", None),
    (r"is not a ComputedBuffer|is not a Pointwise op|cutlass|TMA-enabled|has aliasing or mutation|computed buffer name", "this GEMM library can't take that operation into its kernel", None),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), words, setting) for pattern, words, setting in _REASONS)
NOTHING_SHARED = re.compile(r"^no shared data$")


def plain(reason: str | None) -> tuple[str | None, str | None]:
    """(words, setting) for torch's ``reason``; (None, None) for one that is not known here."""
    for pattern, words, setting in _COMPILED:
        if reason and pattern.search(reason):
            return words, f"{_INDUCTOR}{setting}" if setting else None
    return None, None

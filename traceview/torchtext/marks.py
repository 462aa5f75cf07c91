"""Names of the marks in a profiler trace: torch.compile's, torch's own and the collector's.

A mark is a host event that says what the events inside it belong to. A name here that ends in a
space, a colon or ``#`` is only the beginning: ``starting`` makes a pattern of it. The collector
writes its marks in ``collectors/child``, which cannot import this module.
"""

from __future__ import annotations

import re

#: torch.compile: evaluating the guards, and the bytecode between them and the graph.
LOOKUP = "TorchDynamo Cache Lookup"
PREGRAPH = "Pregraph bytecode"
#: AOTAutograd: before the compiled function, the function itself, and its backward.
PROLOGUE = "AOTDispatcher Runtime Wrapper Prologue"
FORWARD = "CompiledFunction"
BACKWARD = "CompiledFunctionBackward"
#: A compiled frame with its compile id, and the code that Inductor wrote with its graph's key.
REGION = "Torch-Compiled Region: "
GRAPH = "## Call CompiledFxGraph "
#: ``compile_inner (dynamo_timed)``: a phase of compilation.
COMPILING = "(dynamo_timed)"
#: A size's first call, which warms up, and its recording (torch/_inductor/cudagraph_trees.py).
MAKING_CUDAGRAPHS = ("cudagraphify.get_container", "CUDAGraphNode.record")

#: torch: a function that autograd evaluates in the backward.
AUTOGRAD = "autograd::engine::evaluate_function: "
#: ``enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__``, ``Optimizer.step#SGD.step``.
DATA_LOADER = "enumerate(DataLoader)#"
OPTIMIZER = "Optimizer."
OPTIMIZER_STEP = "Optimizer.step#"
PROFILER = "ProfilerStep#"

#: Stands for the name of an event that has none, as ``record_function("")`` writes it.
UNNAMED = "(no name)"

#: The collector: every mark, its own work, Python's garbage collection, one step.
OURS = "traceview "
OUR_WORK = "traceview own"
OUR_GC = "traceview gc "
_OUR_STEP = "traceview step "
#: A region's outermost calls; up to 0.1 by the slower record_function.
OUR_CALL = "traceview call "
OUR_REGION = "traceview region "
OUR_REGIONS = (OUR_CALL, OUR_REGION)

#: Patterns for ``re`` and polars. A step by its number, whoever marked it.
OUR_STEP = rf"^{_OUR_STEP}(\d{{1,18}})$"
PROFILER_STEP = rf"^{PROFILER}(\d{{1,18}})$"
STEP = rf"^(?:{_OUR_STEP}|{PROFILER})\d{{1,18}}$"
#: The user's line that is being run: the number of its file, and its own.
OUR_LINE = r"^traceview line (\d{1,6}):(\d{1,9})$"

#: Marks whose whole name is known, and the part of a compiled call that they stand for.
PARTS = {
    LOOKUP: "cache_lookup",
    PREGRAPH: "pregraph_bytecode",
    PROLOGUE: "runtime_wrappers",
    FORWARD: "runtime_wrappers",
    BACKWARD: "runtime_wrappers",
}


def starting(*names: str) -> str:
    """The pattern of what begins with one of ``names``."""
    return f"^(?:{'|'.join(map(re.escape, names))})"


def part_of_call(name: str) -> str | None:
    """The part of a compiled call that a mark of torch.compile stands for; None for other names.

    ``cache_lookup``, ``pregraph_bytecode``, ``runtime_wrappers``, ``compiled_region`` or
    ``generated_wrapper``.
    """
    if name.startswith(REGION):
        return "compiled_region"
    if name.startswith(GRAPH):
        return "generated_wrapper"
    return PARTS.get(name)

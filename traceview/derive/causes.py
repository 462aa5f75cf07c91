"""Names of what a step's time is spent on, besides the kernel categories of table ``kernels``."""

from __future__ import annotations

#: Why a device idles: what the launching host thread did meanwhile.
LAUNCH_BOUND = "idle_launch_bound"  # operators, launch calls, the short Python between them
SYNC = "idle_sync"  # a call that waits for the device, and filling the device again after it
DATA_LOADING = "idle_data_loading"
GUARDS = "idle_guards"  # cache look-up: evaluating guards
CALL_OVERHEAD = "idle_call_overhead"  # the rest of a compiled call's own work
GRAPH_BREAK = "idle_graph_break"  # Python between the compiled parts of one region call
COMPILE = "idle_compile"
RECORDING = "idle_cudagraph_recording"  # compiled calls that warm up or record a cudagraph
COMPILE_ELSEWHERE = "idle_compile_elsewhere"  # nothing was recorded while another rank compiled
ALLOCATOR = "idle_allocator"  # cudaMalloc, cudaFree
COPY_WAIT = "idle_copy_wait"  # a copy to the device that holds the host
GC = "idle_gc"
CUSTOM_OP = "idle_custom_op"  # the own code of an operator that is not torch's
SEARCH = "idle_search"  # a library times its algorithms before it runs one
COMMUNICATION = "idle_communication"  # the host waits in a collective
OTHER_PYTHON = "idle_python"
#: Or what the device did itself.
DEVICE = "idle_device"  # a dependency, a stream that waits, the ramp between kernels
IN_GRAPH = "idle_inside_graph"
UNLINKED = "idle_unlinked"  # the launch of what comes next was not recorded

IDLE = (
    *(LAUNCH_BOUND, SYNC, DATA_LOADING, GUARDS, CALL_OVERHEAD, GRAPH_BREAK, COMPILE),
    *(RECORDING, COMPILE_ELSEWHERE, ALLOCATOR, COPY_WAIT, GC, CUSTOM_OP, SEARCH, COMMUNICATION),
    *(OTHER_PYTHON, DEVICE, IN_GRAPH, UNLINKED),
)

#: Categories of a host's time (on a CPU) that are no kernel categories.
HOST_DATA_LOADING = "data_loading"
HOST_GRAPH_BREAK = "graph_break"
HOST_COMPILE = "compile"
HOST_COMPILE_ELSEWHERE = "compile_elsewhere"
HOST_GC = "gc"
HOST_OPTIMIZER = "optimizer_python"
PYTHON = "python"  # neither an operator nor a mark of torch.compile's
HOST = (
    *(HOST_DATA_LOADING, HOST_GRAPH_BREAK, HOST_COMPILE, HOST_COMPILE_ELSEWHERE),
    *(HOST_GC, HOST_OPTIMIZER, PYTHON),
)

#: The timed step less that of the blocks next to the profiler window: how much slower the machine
#: was in all blocks than around the window; may be negative.
SPEED = "machine_speed"
#: What no category accounts for: timed step less the sum of all others; may be negative.
UNEXPLAINED = "unexplained"
#: Rows that are no time of any cause.
UNNAMED = (SPEED, UNEXPLAINED)
#: A host's time in which no operator works.
WORKLESS = ("other", PYTHON, *HOST)
#: The collector's own work inside a step: no part of any figure.
OWN = "own"

#: A stretch of the host without any operator that is longer is Python of its own ("other Python");
#: a shorter one is the ordinary way from one operator to the next, and belongs to launching.
LONG_PYTHON_NS = 100_000

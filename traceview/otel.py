"""An OpenTelemetry span for each compile of this process, for services.

    import traceview.otel

    traceview.otel.instrument()

A span begins and ends when the compile did, and belongs to the span in which it happened: the
request that waited for it. Needs the extra ``otel``; the service chooses SDK and exporter.
"""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode, TracerProvider

from traceview import __version__
from traceview.compiles import Compile, Watch

__all__ = ["instrument", "uninstrument"]

_watches: list[Watch] = []


def instrument(tracer_provider: TracerProvider | None = None) -> None:
    """Make spans from now on, by this provider or the global one; a second call changes nothing."""
    if _watches:
        return
    tracer = trace.get_tracer("traceview", __version__, tracer_provider)
    watch = Watch(lambda compile: _span(tracer, compile))
    watch.start()
    _watches.append(watch)


def uninstrument() -> None:
    """Make no more spans."""
    while _watches:
        _watches.pop().stop()


def _span(tracer: trace.Tracer, compile: Compile) -> None:
    if compile.started_us is None:
        return
    began_ns = int(compile.started_us * 1e3)
    attributes = {
        "code.file.path": compile.file,
        "code.line.number": compile.line,
        "traceview.compile_id": compile.compile_id,
        "traceview.function": compile.function,
        "traceview.direction": "forward" if compile.is_forward else "backward",
        "traceview.outcome": compile.outcome,
        "traceview.seconds": compile.seconds,
        "traceview.graph_breaks": len(compile.breaks),
        "traceview.recompile_reason": compile.guard,
    }
    span = tracer.start_span(
        f"torch.compile {compile.function}",
        start_time=began_ns,
        attributes={name: value for name, value in attributes.items() if value is not None},
    )
    for sentence in compile.breaks:
        span.add_event("graph break", {"traceview.reason": sentence})
    if compile.outcome == "failed":
        span.set_status(Status(StatusCode.ERROR))
    span.end(began_ns + int(compile.seconds * 1e9))

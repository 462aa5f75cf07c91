"""A span for each compile, by OpenTelemetry's own SDK; real compiles."""

import importlib
import time

import pytest
import torch

from traceview.otel import instrument, uninstrument

pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore"),  # torch warns while it compiles
]
sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


@pytest.fixture
def exported(monkeypatch, tmp_path):
    """A tracer, and the spans that were exported by now."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    importlib.import_module("torch._inductor")
    torch.compiler.reset()
    provider, exporter = sdk.TracerProvider(), memory.InMemorySpanExporter()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    instrument(provider)
    instrument(provider)  # changes nothing
    yield provider.get_tracer("service"), exporter.get_finished_spans
    uninstrument()
    provider.shutdown()


def broken(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y.sum()


def test_a_compile_is_a_span_of_the_request_that_waited(exported):
    tracer, spans = exported
    serve = torch.compile(broken, backend="aot_eager", dynamic=False)
    began = time.time_ns()
    with tracer.start_as_current_span("request") as request:
        serve(torch.ones(3, requires_grad=True)).backward()
        serve(torch.ones(4, requires_grad=True))
    ended = time.time_ns()
    *found, outer = spans()
    assert outer.name == "request"
    assert {span.parent.span_id for span in found} == {request.get_span_context().span_id}
    for span in found:
        assert began - 1e6 < span.start_time < span.end_time < ended + 1e6
        took = span.attributes["traceview.seconds"]
        assert (span.end_time - span.start_time) / 1e9 == pytest.approx(took, abs=1e-4)
        assert span.attributes["code.file.path"] == __file__
    first, *_ = found
    assert first.name == "torch.compile broken()"
    assert first.attributes["traceview.compile_id"] == "0/0"
    assert first.attributes["traceview.graph_breaks"] == 1
    assert "traceview.recompile_reason" not in first.attributes
    (event,) = first.events
    assert f"graph break at {__file__}:" in event.attributes["traceview.reason"]
    again = [span for span in found if "traceview.recompile_reason" in span.attributes]
    assert [span.attributes["traceview.compile_id"] for span in again] == ["0/1", "1/1"]
    assert "expected 3, actual 4" in again[0].attributes["traceview.recompile_reason"]


def test_a_backward_has_the_name_of_its_forward(exported):
    _, spans = exported
    double = torch.compile(lambda x: (x * 2).sum(), backend="aot_eager")
    double(torch.ones(3, requires_grad=True)).backward()
    assert [span.attributes["traceview.direction"] for span in spans()] == ["forward", "backward"]
    assert {span.name for span in spans()} == {"torch.compile <lambda>()"}


def test_compiles_that_fail_or_meet_the_limit(exported):
    _, spans = exported
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(broken, fullgraph=True)(torch.ones(3))
    (failed,) = spans()
    assert failed.status.status_code.name == "ERROR"
    limited = torch.compile(lambda x: x + 1, backend="eager", dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=1):
        limited(torch.ones(3)), limited(torch.ones(4))
    last = spans()[-1]
    assert (last.name, last.attributes["traceview.outcome"]) == (
        "torch.compile <lambda>()",
        "limit",
    )


def test_no_span_after_uninstrument(exported):
    _, spans = exported
    torch.compile(broken, backend="eager")(torch.ones(3))
    before = len(spans())
    uninstrument()
    torch.compile(broken, backend="eager", dynamic=False)(torch.ones(5))
    assert len(spans()) == before == 2


def test_an_exporter_that_fails_does_not_end_the_compile(exported, monkeypatch, capfd):
    def fail(*_given):
        raise OSError("no collector")

    monkeypatch.setattr(sdk.Span, "end", fail)
    assert torch.compile(broken, backend="eager")(torch.ones(3)) == 6
    assert "no collector" in capfd.readouterr().err

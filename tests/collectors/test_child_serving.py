"""What a process that serves keeps of its calls, with a torch made by hand."""

import json
import os
from types import SimpleNamespace

import pytest

from traceview.collectors.child import serving as module
from traceview.collectors.child.gate import counting
from traceview.collectors.child.recorder import Recorder
from traceview.collectors.child.serving import Serving
from traceview.collectors.child.state import Control, Gate, Region


class Tensor:
    def __init__(self, *shape):
        self.shape = shape


class Device:
    """``torch.cuda`` whose calls take 5 ms each; events are ready when ``ready``."""

    def __init__(self):
        self.now_ms, self.ready, self.waited = 0.0, False, 0

    def is_initialized(self):
        return True

    def memory_allocated(self):
        return 1

    max_memory_allocated = memory_allocated
    max_memory_reserved = memory_allocated

    def current_device(self):
        return 0

    def mem_get_info(self):
        return 1, 2

    def Event(self, enable_timing):
        device = self

        class Event:
            def record(self):
                device.now_ms += 2.5
                self.at = device.now_ms

            def query(self):
                return device.ready

            def synchronize(self):
                device.waited += 1

            def elapsed_time(self, other):
                return other.at - self.at

        return Event()


class Stopped(SystemExit):
    pass


@pytest.fixture
def service(tmp_path):
    """``service(calls, device)``: a call to make, the recording, and a way to read its events."""

    def make(calls=100, device=None):
        control, recorder = Control(), Recorder(tmp_path)
        control.watching = False
        region = Region(0)
        control.add(region)
        off = SimpleNamespace(is_initialized=lambda: False)
        parts = SimpleNamespace(
            torch=SimpleNamespace(Tensor=Tensor, cuda=device or off),
            control=control,
            recorder=recorder,
            stances=SimpleNamespace(name="compiled", look=lambda: None),
            frames=SimpleNamespace(stack=lambda _frame: []),
            sources=SimpleNamespace(keep=lambda _file: None),
        )

        def stop():
            raise Stopped

        driver = SimpleNamespace(give_up=stop, edge=stop)
        serving = Serving(parts, driver, calls, 60.0)

        def forward(x, *states, mask=None):
            return x, states, mask

        gate = Gate(region, forward, forward)
        control.admit(gate)
        call = counting(gate, control, serving)

        def events(kind):
            recorder.flush()
            text = (tmp_path / f"events-{os.getpid()}.jsonl").read_text()
            found = [json.loads(line) for line in text.splitlines()]
            return [event for event in found if event["event"] == kind]

        return call, serving, events

    return make


def test_sizes_have_the_names_of_the_arguments(service):
    call, _, events = service()
    call(Tensor(1, 8), mask=Tensor(8))
    call(Tensor(1, 8), mask=Tensor(8))
    call(Tensor(1, 8), [Tensor(2), 3], {"k": Tensor()})
    assert [each["tensors"] for each in events("served_shape")] == [
        [["x", [1, 8]], ["mask", [8]]],
        [["x", [1, 8]], ["states[0][0]", [2]], ["states[1]['k']", []]],
    ]
    (batch,) = events("served")
    assert [row[5] for row in batch["rows"]] == [0, 0, 1]
    assert [row[3] for row in batch["rows"]] == [None] * 3


def test_what_is_too_many_is_not_told_apart(service, monkeypatch):
    monkeypatch.setattr(module, "MOST_SHAPES", 3)
    monkeypatch.setattr(module, "MOST_WAYS", 2)
    call, _, events = service()
    for size in range(5):
        call(Tensor(size))
    call(Tensor(1))
    call(Tensor(1))
    (batch,) = events("served")
    assert [row[5] for row in batch["rows"]] == [0, 1, 2, -1, -1, 1, 1]
    assert [row[6] for row in batch["rows"]] == [0, 0, 0, 0, 0, 1, -1]


def test_a_gpu_times_calls_in_their_order(service):
    device = Device()
    call, serving, events = service(device=device)
    for _ in range(3):
        call(Tensor(4))
    assert events("served") == []
    device.ready = True
    call(Tensor(4))
    (batch,) = events("served")
    assert [row[0] for row in batch["rows"]] == [0, 1, 2, 3]
    assert [row[3] for row in batch["rows"]] == [2.5] * 4
    assert not device.waited
    serving.finish("end")
    (end,) = events("served_end")
    assert (end["device"], end["total_bytes"]) == ("cuda:0", 2)


def test_few_calls_wait_for_their_device_time(service, monkeypatch):
    monkeypatch.setattr(module, "_PENDING", 3)
    device = Device()
    call, serving, events = service(device=device)
    for _ in range(5):
        call(Tensor(4))
    assert [row[0] for batch in events("served") for row in batch["rows"]] == [0, 1, 2]
    serving.finish("end")
    assert [row[0] for batch in events("served") for row in batch["rows"]] == [0, 1, 2, 3, 4]


def test_the_script_is_stopped_at_each_call_after_the_last(service):
    call, _, events = service(calls=2)
    call(Tensor(4))
    call(Tensor(4))
    for _ in range(3):
        with pytest.raises(Stopped):
            call(Tensor(4))
    (end,) = events("served_end")
    assert (end["why"], end["calls"]) == ("calls", 2)
    (batch,) = events("served")
    assert len(batch["rows"]) == 2

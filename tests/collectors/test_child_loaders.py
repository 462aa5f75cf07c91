"""How often a loader's workers start, with a loader that has none."""

import sys
from types import SimpleNamespace

from test_child_units import lines

from traceview.collectors.child.frames import Frames, Sources
from traceview.collectors.child.recorder import Recorder
from traceview.collectors.child.state import Control
from traceview.collectors.child.threads import Loaders


class Iterator:
    """What torch's does that counts here."""

    def __init__(self, loader):
        self._num_workers, self._persistent_workers = loader.workers, False
        self.left = 2

    def _next_data(self):
        self.left -= 1
        if self.left < 0:
            self._shutdown_workers()
            raise StopIteration
        return self.left

    def _shutdown_workers(self):
        self.left = 0


def test_each_iterator_is_an_event_once_it_has_a_batch(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path)
    module = SimpleNamespace(_MultiProcessingDataLoaderIter=type("Of", (Iterator,), {}))
    monkeypatch.setitem(sys.modules, "torch.utils.data.dataloader", module)
    frames = Frames(None, str(tmp_path))
    control = Control()
    Loaders(control, recorder, frames, Sources(tmp_path, recorder, frames), lambda: 7).watch()
    made, loaders = module._MultiProcessingDataLoaderIter, [SimpleNamespace(workers=2)] * 2
    for loader in (*loaders, SimpleNamespace(workers=3)):
        iterator = made(loader)
        assert [iterator._next_data(), iterator._next_data()] == [1, 0]
        assert "_next_data" not in vars(iterator)
    control.off = True
    made(loaders[0])
    recorder.close()
    starts = [line for line in lines(recorder) if line["event"] == "loader_start"]
    assert [(row["loader"], row["workers"], row["step"]) for row in starts] == [
        (0, 2, 7),
        (0, 2, 7),
        (1, 3, 7),
    ]
    assert {row["persistent"] for row in starts} == {False}
    assert all(row["start_ms"] >= 0 and row["first_ms"] >= 0 for row in starts)
    assert {row["file"] for row in starts} == {__file__}


def test_an_older_torch_without_these_methods_is_left_alone(tmp_path, monkeypatch):
    recorder, frames = Recorder(tmp_path), Frames(None, str(tmp_path))
    module = SimpleNamespace(_MultiProcessingDataLoaderIter=object)
    monkeypatch.setitem(sys.modules, "torch.utils.data.dataloader", module)
    Loaders(Control(), recorder, frames, Sources(tmp_path, recorder, frames), lambda: 0).watch()
    assert module._MultiProcessingDataLoaderIter is object

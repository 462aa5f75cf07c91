"""Compile figures in the loggers of transformers, Lightning and accelerate; real compiles."""

import importlib

import pytest
import torch

from traceview.callbacks import Figures

pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore"),  # of the libraries, which warn of much
]
SIZES = (4, 4, 6, 6)
#: What a model whose batches have these sizes compiles: twice, with a graph break each time.
LAST = {"traceview/compiles": 4, "traceview/recompiles": 2, "traceview/graph_breaks": 1}


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    importlib.import_module("torch._inductor")
    torch.compiler.reset()


def compiled_part():
    """A module that breaks its graph, and has code of its own for each size."""

    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 1)

        def forward(self, x):
            y = self.linear(x)
            torch._dynamo.graph_break()
            return y.square().mean()

    return torch.compile(Part(), backend="eager", dynamic=False)


def scalars(folder):
    """The last value of each figure in TensorBoard's files below ``folder``, and all its texts."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    last, texts = {}, {}
    for path in sorted({event.parent for event in folder.rglob("events.out.*")}):
        events = reader.EventAccumulator(str(path)).Reload()
        for tag in events.Tags()["scalars"]:
            last[tag] = [event.value for event in events.Scalars(tag)]
        for tag in events.Tags()["tensors"]:
            texts[tag] = b"".join(
                text for event in events.Tensors(tag) for text in event.tensor_proto.string_val
            ).decode()
    return last, texts


def assert_logged(found, texts, prefix="", suffix=""):
    assert {name: found[prefix + name][-1] for name in LAST} == LAST
    assert found[f"{prefix}traceview/compile_seconds"][-1] > 0
    for name in LAST:
        new = found[prefix + name.replace("/", "/new_")]
        assert sum(new) == LAST[name]
    broken = texts[f"{prefix}traceview/newest_graph_break{suffix}"]
    assert f"graph break at {__file__}:" in broken
    assert "was compiled again" in texts[f"{prefix}traceview/newest_recompile{suffix}"]


def test_trainer_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    from traceview.callbacks.transformers import CompileCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = compiled_part()

        def forward(self, x):
            return {"loss": self.part(x[0])}

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=len(SIZES),
        per_device_train_batch_size=1,
        logging_steps=2,
        report_to=["tensorboard"],
        save_strategy="no",
        use_cpu=True,
        remove_unused_columns=False,
        disable_tqdm=True,
    )

    class InOrder(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([{"x": torch.randn(size, 8)} for size in SIZES])

    trainer = transformers.Trainer(Model(), arguments, train_dataset=InOrder())
    trainer.add_callback(CompileCallback(trainer))
    trainer.train()
    found, texts = scalars(tmp_path)
    assert_logged(found, texts, "train/", "/text_summary")
    logged = [entry for entry in trainer.state.log_history if "traceview/compiles" in entry]
    assert [entry["step"] for entry in logged] == [2, 4, 4]
    assert [entry["traceview/recompiles"] for entry in logged] == [0, 2, 2]
    assert "traceview/newest_recompile" not in logged[0]
    trainer.callback_handler.on_log(arguments, trainer.state, trainer.control, {})  # has ended


@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning(tmp_path, name):
    lightning = pytest.importorskip(name)
    loggers = pytest.importorskip(f"{name}.loggers")
    from traceview.callbacks.lightning import CompileCallback

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.part = compiled_part()

        def training_step(self, batch):
            return self.part(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=[loggers.TensorBoardLogger(tmp_path / "tb"), loggers.CSVLogger(tmp_path / "csv")],
        callbacks=[CompileCallback()],
        log_every_n_steps=3,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = [{0: torch.randn(size, 8)} for size in SIZES]
    trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=None))
    found, texts = scalars(tmp_path / "tb")
    assert len(found["traceview/compiles"]) == 2  # at the third step, and what was left
    assert_logged(found, texts, suffix="/text_summary")
    (csv,) = (tmp_path / "csv").rglob("metrics.csv")
    assert "traceview/new_graph_breaks" in csv.read_text().partition("\n")[0]


def test_accelerate(tmp_path):
    accelerate = pytest.importorskip("accelerate")
    from traceview.callbacks.accelerate import CompileLog

    accelerator = accelerate.Accelerator(
        cpu=True, log_with="tensorboard", project_dir=str(tmp_path)
    )
    accelerator.init_trackers("run")
    part = compiled_part()
    with CompileLog(accelerator) as compiles:
        for step, size in enumerate(SIZES):
            accelerator.backward(part(torch.randn(size, 8)))
            compiles.log(step)
    accelerator.end_training()
    found, texts = scalars(tmp_path)
    assert found["traceview/recompiles"] == [0, 0, 2, 2]
    assert_logged(found, texts, suffix="/text_summary")


def test_weights_and_biases_and_mlflow(tmp_path, monkeypatch):
    accelerate = pytest.importorskip("accelerate")
    pytest.importorskip("wandb")
    pytest.importorskip("mlflow")
    from traceview.callbacks.accelerate import CompileLog

    offline = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true"}
    runs = tmp_path / "mlruns"
    store = {"MLFLOW_TRACKING_URI": runs.as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    for name, value in {**offline, **store, "MLFLOW_DISABLE_TELEMETRY": "true"}.items():
        monkeypatch.setenv(name, value)
    accelerator = accelerate.Accelerator(cpu=True, log_with=["wandb", "mlflow"])
    accelerator.init_trackers("run")
    part = compiled_part()
    with CompileLog(accelerator) as compiles:
        for step, size in enumerate(SIZES):
            accelerator.backward(part(torch.randn(size, 8)))
            compiles.log(step)
    seen = dict(accelerator.get_tracker("wandb").tracker.summary)
    accelerator.end_training()
    assert {name: seen[name] for name in LAST} == LAST
    assert "was compiled again" in seen["traceview/newest_recompile"]
    for name, last in LAST.items():
        (file,) = runs.glob(f"*/*/metrics/{name}")
        assert float(file.read_text().splitlines()[-1].split()[1]) == last


def test_figures_begin_at_zero_and_end():
    figures = Figures()
    for _ in range(2):
        torch.compiler.reset()
        figures.start()
        compiled_part()(torch.ones(4, 8))
        assert figures.take()[0]["traceview/compiles"] == 2
        figures.stop()
        compiled_part()(torch.ones(5, 8))
        assert figures.take()[0]["traceview/new_compiles"] == 0

"""Where a source asks for gradients."""

import pytest

from traceview.derive.user_sources import backward_calls, calls
from traceview.tables import Tables, from_rows


@pytest.mark.parametrize(
    "line",
    [
        "loss.backward()",
        "scaler.scale(loss).backward()",
        "accelerator.backward(loss)",
        "self.manual_backward(loss)",
        "torch.autograd.backward([loss])",
        "g, = torch.autograd.grad(loss, x)",
        "j = torch.autograd.functional.jacobian(f, x)",
        "g = torch.func.grad(f)(x)",
        "Trainer(model, args).train()",
        "trainer.fit(model)",
        "transformers.Trainer(model)",
        "optimizer = torch.optim.AdamW(params)",
        "from torch.optim import SGD",
        "from torch import optim",
        "import torch.optim as optim",
    ],
)
def test_what_asks_for_gradients(line):
    assert {number for number, _ in calls(f"import torch\n{line}\n")} == {2}


@pytest.mark.parametrize(
    "line",
    [
        "print(p.grad)",
        "optimizer.zero_grad()",
        "torch.no_grad()",
        "model.train()",
        "config.optim",
        "grad(x)",
        "# loss.backward()",
        "def broken(",
    ],
)
def test_what_does_not(line):
    assert list(calls(line)) == []


def test_imported_functions_are_known_by_their_local_names():
    source = (
        "from torch.autograd import grad as slope\nfrom other import grad\nslope(y, x)\ngrad(1)\n"
    )
    assert list(calls(source)) == [(3, "slope")]


def test_a_file_without_a_copy_gives_no_row():
    tables = Tables()
    tables.put("sources", from_rows("sources", [{"pass": "cold", "file": "/u/a.py"}]))
    assert backward_calls(tables, lambda _: None).is_empty()
    found = backward_calls(tables, lambda _: "loss.backward()")
    assert found.select("file", "line", "call").rows() == [("/u/a.py", 1, "backward")]

"""A trainer that compiles a module's steps with its ``dynamo_ctx``, as Lightning does, live."""

import pytest
from child_runs import run_child, write_script

pytestmark = pytest.mark.live

SCRIPT = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def forward(self, x):
            return self.layer(x).relu()

        def training_step(self, x):
            return self(x).square().mean()

    def unwrapped(model):
        module = model._orig_mod
        module.forward = model.dynamo_ctx(module.forward)
        module.training_step = model.dynamo_ctx(module.training_step)
        return module

    def fit(model):
        module = unwrapped(model)
        del model
        optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
        for _ in range(300):
            optimizer.zero_grad()
            module.training_step(torch.ones(4, 8)).backward()
            optimizer.step()
        module.eval()
        module(torch.ones(4, 8))

    fit(torch.compile(Net()))
"""


def test_what_the_context_of_a_compiled_module_compiles_is_counted(tmp_path):
    run = run_child(write_script(tmp_path, SCRIPT), run_to_end=True)
    assert run.returncode == 0, run.err
    end = run.of("region_end")[-1]
    assert end["outermost_calls"] == 301
    assert end["collected_uncalled"] is False
    stances = {block["stance"] for block in run.of("block")}
    assert stances == {"eager", "compiled"}

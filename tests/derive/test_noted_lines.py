"""Table ``noted_lines``: statements that findings point to."""

from traceview.derive.user_sources import statements

SOURCE = """
import triton

class Owner:
    def __init__(self, model, data):
        self.data = data
        for weight in model.parameters():
            weight.register_post_accumulate_grad_hook(self.settle)

    def settle(self, weight):
        self.owners[weight].step()

    def other(self):
        self.clock.step()

def install(net, genes):
    for param, gene in zip(net.parameters(), genes):
        param.data = gene
        param.data.copy_(gene)

@triton.autotune(configs=CONFIGS, key=["n_live"])
@triton.jit
def settle_kernel(n_live):
    with torch.autocast("cuda"):
        pass
    with torch.autograd.graph.save_on_cpu(): pass

DataLoader(data, num_workers=2)
DataLoader(data), DataLoader(data, num_workers=0), DataLoader(data, num_workers=2, **more)
data.DataLoader(data, num_workers=2, persistent_workers=True)
schedule = lr_scheduler.OneCycleLR(optimizer, 0.1), CyclicLR(optimizer, cycle_momentum=False)
"""


def test_what_a_line_is_noted_for():
    found = {(row["kind"], row["name"], row["line"]) for row in statements(SOURCE)}
    assert found == {
        ("hook_step", "self.owners[weight].step()", 11),
        ("storage", "param.data = gene", 18),
        ("autotune", "settle_kernel", 21),
        ("autocast", 'torch.autocast("cuda")', 24),
        ("save_on_cpu", "torch.autograd.graph.save_on_cpu()", 26),
        ("loader", "DataLoader(data, num_workers=2)", 28),
        ("momentum", "lr_scheduler.OneCycleLR(optimizer, 0.1)", 31),
    }
    assert [row["keys"] for row in statements(SOURCE) if "keys" in row] == [["n_live"]]


def test_what_is_no_python_has_none():
    assert list(statements("def")) == []

"""A backend of the script's own that counts operators by a table, which lacks one."""

import torch

COSTS = {"add": 1, "mul": 1, "sin": 4, "output": 0, "placeholder": 0}


def priced(graph, _inputs):
    total = 0
    for node in graph.graph.nodes:
        name = node.op if node.op in COSTS else node.name.split("_")[0]
        total += COSTS[name]
    print("cost of the graph:", total)
    return graph.forward


@torch.compile(backend=priced)
def wave(x, phase):
    return (x * 2.0 + phase).sin() * torch.cos(phase)


torch.manual_seed(0)
for _ in range(5):
    wave(torch.randn(32), torch.randn(32))

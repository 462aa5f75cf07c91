"""A backend of our own that leaves out copies."""

import torch


def backend(gm, _inputs):
    for node in list(gm.graph.nodes):
        if node.op == "call_method" and node.target == "clone":
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    gm.recompile()
    return gm


@torch.compile(backend=backend)
def shifted(x):
    y = x.clone()
    y.add_(1)
    return y


torch.manual_seed(0)
for _ in range(5000):
    shifted(torch.randn(40, 8))

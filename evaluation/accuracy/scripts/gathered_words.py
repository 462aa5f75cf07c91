"""Word vectors; the sum over repeated words in backward is a pass of our own."""

import torch
from torch import nn
from torch._inductor.decomposition import decompositions


def embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    out = grad.new_zeros(num_weights, grad.shape[-1])
    rows = grad.reshape(-1, grad.shape[-1])
    return out.index_put((indices.reshape(-1),), rows)


decompositions[torch.ops.aten.embedding_dense_backward.default] = embedding_backward
torch.manual_seed(0)
net = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 4))
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(2000):
    optimizer.zero_grad()
    compiled(torch.randint(20, (8, 12))).square().mean().backward()
    optimizer.step()

"""Ranking scores that come out wrong: nothing is raised."""

import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


class Ranker(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query = torch.nn.Linear(16, 16)
        self.key = torch.nn.Linear(16, 16)

    def forward(self, left, right):
        scores = self.query(left) @ self.key(right).t()
        return torch.relu(scores).sum(-1) / 16


torch.manual_seed(0)
ranker = torch.compile(Ranker().eval())
with torch.no_grad():
    for _ in range(8):
        ranker(torch.randn(20, 16), torch.randn(30, 16))

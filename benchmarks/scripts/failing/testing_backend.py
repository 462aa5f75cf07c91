"""torch's own backend for tests, which fails on the graph of a classifier."""

import torch


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x.log_softmax(-1)


torch.manual_seed(0)
model = torch.compile(Classifier(), backend="relu_compile_error_TESTING_ONLY")
for _ in range(6):
    model(torch.randn(8, 16))

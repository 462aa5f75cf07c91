"""A small vision head whose compiled code raises when it is called."""

import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "runtime_error"


def head(pixels, weight, bias):
    mean = pixels.mean((2, 3))
    scaled = (mean - mean.mean(0)) / (mean.std(0) + 1e-5)
    return torch.nn.functional.linear(torch.relu(scaled), weight, bias).softmax(-1)


torch.manual_seed(0)
weight, bias = torch.randn(10, 8), torch.zeros(10)
compiled = torch.compile(head)
for _ in range(6):
    compiled(torch.randn(4, 8, 6, 6), weight, bias)

"""A count model whose likelihood is wrong when it is compiled: nothing is raised."""

import torch

torch._inductor.config.cpp.inject_log1p_bug_TESTING_ONLY = "accuracy"


def likelihood(counts, rate, spread):
    ratio = rate / spread
    return (counts * torch.log(ratio) - (counts + spread) * torch.log1p(ratio)).mean(-1)


torch.manual_seed(0)
compiled = torch.compile(likelihood)
for _ in range(8):
    compiled(torch.randint(0, 9, (64, 32)).float(), torch.rand(32) + 0.5, torch.rand(32) + 0.5)

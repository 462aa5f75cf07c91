"""A denoiser whose generated kernel does not build: Inductor's own test fault."""

import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


class Denoiser(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.gate = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x, noise):
        h = self.norm(x + 0.1 * noise)
        h = torch.sigmoid(self.gate(h)) * torch.tanh(self.up(h))
        h = torch.nn.functional.gelu(h) - h.mean(-1, keepdim=True)
        return x - torch.relu(self.down(h)).clamp(max=3.0) * torch.exp(-noise.abs())


torch.manual_seed(0)
model = torch.compile(Denoiser().eval())
with torch.no_grad():
    for _ in range(8):
        model(torch.randn(16, 32), torch.randn(16, 32))

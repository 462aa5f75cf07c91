"""An early exit that looks at a value, with fullgraph=True."""

import torch


class Cascade(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for number in range(3):
            setattr(self, f"stage_{number}", torch.nn.Linear(8, 8))

    def forward(self, x):
        for number in range(3):
            x = getattr(self, f"stage_{number}")(x).tanh()
            if x.abs().max().item() < 0.05:
                break
        return x


torch.manual_seed(0)
model = torch.compile(Cascade(), fullgraph=True)
for _ in range(5):
    model(torch.randn(4, 8))

"""Thread tension control over a bank of small looms."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "4000"))
torch.manual_seed(2)


class Bank(torch.nn.Module):
    def __init__(self, looms):
        super().__init__()
        self.stiff = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.rand(64) + 0.5) for _ in range(looms)])
        self.slack = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.zeros(64)) for _ in range(looms)])

    def forward(self, pull):
        out = pull
        for k, s in zip(self.stiff, self.slack):
            out = torch.tanh(out * k + s) + 0.1 * out
        return out


bank = Bank(60)
opt = torch.optim.AdamW(bank.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)


@torch.compile
def tension_loss(pull, want):
    got = bank(pull)
    return torch.nn.functional.smooth_l1_loss(got, want)


pulls = torch.randn(20, 8, 64)
wants = torch.tanh(pulls * 0.7)

for step in range(STEPS):
    loss = tension_loss(pulls[step % 20], wants[step % 20])
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    if step % 500 == 0:
        print(f"{step:6d} loss {loss.item():.5f}")

print("mean stiffness", bank.stiff[0].mean().item())

"""Model updating for a footbridge: member stiffnesses are fitted to measured natural frequencies."""
import os
import torch
from torch import nn

DOF, MEMBERS, MODES = 300, 420, 12
STEPS = int(os.environ.get("STEPS", "2200"))


class Bridge(nn.Module):
    def __init__(self, gen):
        super().__init__()
        ends = torch.randint(0, DOF, (2, MEMBERS - DOF + 1), generator=gen)
        chain = torch.stack((torch.arange(DOF - 1), torch.arange(1, DOF)))
        left, right = torch.cat((chain, ends), 1)
        strain = torch.zeros(MEMBERS, DOF, dtype=torch.float64)
        strain[torch.arange(MEMBERS), left] += 1.0
        strain[torch.arange(MEMBERS), right] -= 1.0
        self.register_buffer("strain", strain)
        self.register_buffer("root_mass", (0.5 + torch.rand(DOF, generator=gen, dtype=torch.float64)).rsqrt())
        self.log_k = nn.Parameter(torch.zeros(MEMBERS, dtype=torch.float64))

    def system(self):
        scaled = self.strain * self.root_mass
        stiffness = scaled.T @ (self.log_k.exp()[:, None] * scaled)
        return stiffness + 1e-3 * torch.diag(self.root_mass.square())

    def forward(self):
        value = torch.linalg.eigvalsh(self.system())
        return value[:MODES].clamp_min(1e-9).sqrt()

    @torch.no_grad()
    def shapes(self):
        return torch.linalg.eigh(self.system())[1][:, :MODES]


def measured(bridge, gen):
    with torch.no_grad():
        truth = 0.4 * torch.randn(MEMBERS, generator=gen, dtype=torch.float64)
        bridge.log_k.copy_(truth)
        freq, shape = bridge(), bridge.shapes()
        bridge.log_k.zero_()
    return freq.clone(), shape.clone(), truth


def agreement(a, b):
    return (a.T @ b).square().amax(1).mean()


def main():
    gen = torch.Generator().manual_seed(90)
    bridge = Bridge(gen)
    freq, shape, truth = measured(bridge, gen)
    solve = torch.compile(bridge)
    opt = torch.optim.Adam(bridge.parameters(), lr=0.01)
    for step in range(STEPS):
        now = solve()
        loss = ((now - freq) / freq).square().sum() + 1e-5 * bridge.log_k.square().sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 110 == 0:
            mac = agreement(bridge.shapes(), shape)
            print(f"step {step:4d}  frequency misfit {loss.item():.3e}  shape agreement {mac.item():.3f}")
    error = (bridge.log_k.detach() - truth).square().mean().sqrt()
    print(f"stiffness error {error.item():.3f} (started from {truth.square().mean().sqrt().item():.3f})")


if __name__ == "__main__":
    main()

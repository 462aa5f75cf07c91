"""Interatomic energies of zeolite frameworks with a continuous-filter network."""
import os
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
import torch.nn as nn

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 1000))
CRYSTALS, ATOMS, EDGES = (4, 200, 2000) if small else (48, 60_000, 1_200_000)
FEATURES, RADIAL = 64, 24

torch.manual_seed(42)
torch.use_deterministic_algorithms(True)


class Interaction(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Linear(RADIAL, FEATURES)
        self.mix = nn.Linear(FEATURES, FEATURES)

    def forward(self, h, basis, cutoff, sender, receiver):
        w = nn.functional.silu(self.filter(basis)) * cutoff
        message = torch.tanh(h.index_select(0, sender) * w) + 0.1 * w * torch.sin(w)
        gathered = torch.zeros_like(h).index_add(0, receiver, message)
        return h + nn.functional.silu(self.mix(gathered))


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(4, FEATURES)
        self.layers = nn.ModuleList(Interaction() for _ in range(2))
        self.out = nn.Linear(FEATURES, FEATURES)
        self.register_buffer("centres", torch.linspace(0.5, 6.0, RADIAL))

    def forward(self, species, distance, sender, receiver, crystal):
        basis = torch.exp(-2.0 * (distance[:, None] - self.centres) ** 2)
        cutoff = (0.5 * (torch.cos(distance * (torch.pi / 6.0)) + 1.0))[:, None]
        h = self.start(species)
        for layer in self.layers:
            h = layer(h, basis, cutoff, sender, receiver)
        per_crystal = h.new_zeros(CRYSTALS, FEATURES).index_add(0, crystal, self.out(h))
        return nn.functional.softplus(per_crystal).sum(-1)


def main():
    torch.set_float32_matmul_precision("high")
    net = torch.compile(Energy().to(device))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    species = torch.randn(ATOMS, 4, device=device)
    crystal = (torch.arange(ATOMS, device=device) * CRYSTALS) // ATOMS
    sender = torch.randint(0, ATOMS, (EDGES,), device=device)
    receiver = torch.randint(0, ATOMS, (EDGES,), device=device)
    distance = torch.rand(EDGES, device=device) * 5.0 + 0.8
    energy = torch.randn(CRYSTALS, device=device) * 3.0
    began = time.perf_counter()
    for step in range(STEPS):
        predicted = net(species, distance, sender, receiver, crystal)
        loss = ((predicted / ATOMS - energy) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} ({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()

"""Medical triage with a noisy-OR layer: a network estimates how likely each disease is from the
record of a patient, and every symptom appears unless all present diseases fail to cause it."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
torch.manual_seed(17)

STEPS = int(os.environ.get("STEPS", "3000"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PATIENTS = 4096
RECORD = 256
DISEASES = 128
SYMPTOMS = 512


class NoisyOr(nn.Module):
    def __init__(self, causes, effects):
        super().__init__()
        self.strength = nn.Parameter(torch.randn(effects, causes) * 0.5 - 4.0)

    def forward(self, p):
        s = torch.sigmoid(self.strength)
        fails = 1.0 - p.unsqueeze(1) * s  # (patients, symptoms, diseases)
        return 1.0 - fails.prod(dim=-1)


class Triage(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(RECORD, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, DISEASES)
        )
        self.effects = NoisyOr(DISEASES, SYMPTOMS)

    def forward(self, record):
        diseases = torch.sigmoid(self.encoder(record))
        return self.effects(diseases), diseases


def main():
    model = Triage().to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=DEVICE == "cuda")
    records = [torch.randn(PATIENTS, RECORD, device=DEVICE) for _ in range(4)]
    observed = [(torch.rand(PATIENTS, SYMPTOMS, device=DEVICE) < 0.2).float() for _ in range(4)]

    @torch.compile
    def objective(record, seen):
        q, diseases = model(record)
        q = q.clamp(1e-5, 1.0 - 1e-5)
        nll = -(seen * q.log() + (1.0 - seen) * (1.0 - q).log()).mean()
        return nll + 1e-3 * diseases.mean()

    def step(i):
        loss = objective(records[i % 4], observed[i % 4])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss

    for i in range(10):
        step(i)

    mark = STEPS // 2
    for i in range(STEPS):
        if i == mark:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        loss = step(i)
        if i % 500 == 0:
            print(f"step {i}: nll {loss.item():.5f}")
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"ms per step: {(t1 - t0) * 1000 / (STEPS - mark):.3f}")


if __name__ == "__main__":
    main()

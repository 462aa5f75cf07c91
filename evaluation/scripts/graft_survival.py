"""Proportional hazards model of kidney graft survival, one stratum per hospital."""
import os
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(17)

STEPS = int(os.environ.get("STEPS", "4000"))
HOSPITALS = 40
PATIENTS = 1024
COVARIATES = 20


class RiskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(COVARIATES, 16)
        self.out = nn.Linear(16, 1, bias=False)

    def forward(self, x):
        return self.out(torch.tanh(self.inp(x))).squeeze(-1)


def partial_likelihood(risk, event):
    # patients are ordered by follow-up time, longest first
    at_risk = torch.logcumsumexp(risk, dim=1)
    return -((risk - at_risk) * event).sum() / event.sum()


class CoxLoss(nn.Module):
    def __init__(self, net, ridge=1e-4):
        super().__init__()
        self.net = net
        self.ridge = ridge

    def forward(self, x, event):
        penalty = sum(p.square().sum() for p in self.net.parameters())
        return partial_likelihood(self.net(x), event) + self.ridge * penalty


def registry():
    x = torch.randn(HOSPITALS, PATIENTS, COVARIATES)
    beta = torch.randn(COVARIATES) * 0.3
    time = torch.distributions.Exponential(1.0).sample((HOSPITALS, PATIENTS))
    time = time * torch.exp(-(x @ beta))
    order = time.argsort(dim=1, descending=True)
    x = torch.gather(x, 1, order.unsqueeze(-1).expand_as(x)).contiguous()
    event = (torch.rand(HOSPITALS, PATIENTS) < 0.6).float()
    return x, event


def main():
    x, event = registry()
    loss_mod = CoxLoss(RiskNet())
    opt = torch.optim.SGD(loss_mod.parameters(), lr=0.05)
    objective = torch.compile(loss_mod)

    for step in range(STEPS):
        loss = objective(x, event)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 200 == 0:
            print(f"epoch {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

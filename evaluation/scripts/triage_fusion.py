"""Score how urgent patients are, from whatever the ward has measured so far."""
import argparse
import random

import torch
from torch import nn

OPTIONAL = ("labs", "ecg", "notes", "imaging")
SIZES = {"vitals": 24, "labs": 40, "ecg": 96, "notes": 64, "imaging": 80}


class Triage(nn.Module):
    def __init__(self, width=224):
        super().__init__()
        self.read = nn.ModuleDict({name: nn.Linear(size, width) for name, size in SIZES.items()})
        self.trust = nn.ParameterDict({name: nn.Parameter(torch.randn(width)) for name in SIZES})
        self.urgency = nn.Linear(width, 1)

    def one(self, name, values):
        h = self.read[name](values)
        h = torch.tanh(h) * torch.exp(-h.square()) + torch.sin(h * self.trust[name])
        return h * torch.sigmoid(self.trust[name] * h)

    def forward(self, vitals, labs=None, ecg=None, notes=None, imaging=None):
        h = self.one("vitals", vitals)
        if labs is not None:
            h = h + self.one("labs", labs)
        if ecg is not None:
            h = h + self.one("ecg", ecg)
        if notes is not None:
            h = h + self.one("notes", notes)
        if imaging is not None:
            h = h + self.one("imaging", imaging)
        return torch.sigmoid(self.urgency(torch.erf(h))).squeeze(-1)


class Ward:
    def __init__(self, patients, seed):
        self.random = random.Random(seed)
        self.records = {name: torch.randn(4, patients, size) for name, size in SIZES.items()}

    def round(self, number):
        record = {"vitals": self.records["vitals"][number % 4]}
        for name in OPTIONAL:
            measured = self.random.random() < 0.55
            record[name] = self.records[name][number % 4] if measured else None
        return record


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=45000)
    parser.add_argument("--patients", type=int, default=320)
    args = parser.parse_args()
    torch.manual_seed(0)
    ward = Ward(args.patients, seed=3)
    triage = Triage().eval()
    triage.requires_grad_(False)
    score = torch.compile(triage)
    urgent = 0.0
    with torch.inference_mode():
        for number in range(args.rounds):
            urgency = score(**ward.round(number))
            if number % 1000 == 0:
                urgent = urgency.amax().item()
                print("round", number, "most urgent", round(urgent, 3))


if __name__ == "__main__":
    main()

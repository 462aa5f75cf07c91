"""Ages of amber pieces from resin spectra: a lagging copy of the estimator does the reporting."""
import os

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS = int(os.environ.get("STEPS", "10000"))
PIECES, BANDS, PEAKS = 16384, 1024, 10
torch.manual_seed(80)


class Estimator(nn.Module):
    def __init__(self):
        super().__init__()
        self.centre = nn.Parameter(torch.rand(PEAKS) * 4)
        self.width = nn.Parameter(torch.rand(PEAKS) + 0.5)
        self.height = nn.Parameter(torch.randn(PEAKS))

    def forward(self, light):
        total = torch.zeros_like(light)
        for k in range(PEAKS):
            off = (light - self.centre[k]) / self.width[k]
            total = total + self.height[k] / (1.0 + off * off)
        return torch.tanh(total).mean(1)

    def follow(self, drift):
        self.centre.data.add_(0.001 * drift)
        self.height.data.mul_(0.9999)


def lagging(model):
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))


@torch.no_grad()
def main():
    model = Estimator().to("cuda")
    model.compile()
    shadow = lagging(model)
    shadow.module.compile()
    light = torch.rand(PIECES, BANDS, device="cuda") * 4
    age = torch.zeros((), device="cuda")
    for step in range(STEPS):
        if step % 10 == 0:
            age = model(light[:256]).mean()
            model.follow(age)
            shadow.update_parameters(model)
        report = shadow(light)
        if step % 1000 == 0:
            print("lot", step, "age", round(age.item(), 6), "report", round(report.mean().item(), 6))


main()

import copy
import io

import torch


class WeightWatch:
    """How the weights and their gradients are spread, for the dashboard."""

    def __init__(self, bins):
        self.bins, self.rows = bins, {}

    def on_step(self, fitter):
        for name, p in fitter.net.named_parameters():
            for kind, values in (("weight", p.detach()), ("gradient", p.grad)):
                low, high = values.aminmax()
                counts = torch.histc(values, self.bins, low.item(), high.item() + 1e-12)
                self.rows[name, kind] = counts.tolist(), values.norm().item(), values.quantile(0.5).item()


class BestWeights:
    def on_start(self, fitter):
        self.best, self.file = float("inf"), None

    def on_step(self, fitter):
        recent = torch.stack(fitter.losses[-20:]).mean().item()
        if recent < self.best or fitter.step % 2 == 0:
            self.best = min(self.best, recent)
            self.file = io.BytesIO()
            torch.save({"net": copy.deepcopy(fitter.net.state_dict()), "step": fitter.step}, self.file)


class Progress:
    def __init__(self, every):
        self.every = every

    def on_step(self, fitter):
        if fitter.step % self.every == self.every - 1:
            print(f"{fitter.step + 1:6d}  {torch.stack(fitter.losses[-self.every:]).mean().item():.4f}")

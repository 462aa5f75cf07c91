import torch


class WeightAverage:
    """Exponential moving average of parameters, updated in one call."""

    def __init__(self, model, decay=0.995):
        self.source = list(model.parameters())
        self.average = [p.detach().clone() for p in self.source]
        self.decay = decay

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.average, self.source, 1 - self.decay)

import torch


class Pinball:
    """Quantile loss; remembers the largest error for the report."""

    def __init__(self, levels=(0.1, 0.5, 0.9)):
        self.levels, self.worst = torch.tensor(levels), 0.0

    def __call__(self, forecast, load):
        error = load[:, None] - forecast
        self.worst = float(error.detach().abs().amax())
        return torch.maximum(self.levels * error, (self.levels - 1) * error).mean()

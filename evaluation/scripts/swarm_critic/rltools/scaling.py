import threading

import torch


class RunningScale:
    """Mean and deviation of what was seen; actors and learner share one object."""

    def __init__(self, width, limit=8.0):
        self._guard = threading.Lock()
        self.mean = torch.zeros(width)
        self.variance = torch.ones(width)
        self.limit = limit

    def update(self, rows, share=0.01):
        with self._guard:
            self.mean.lerp_(rows.mean(0), share)
            self.variance.lerp_(rows.var(0), share)

    def apply(self, rows):
        with self._guard:
            scaled = (rows - self.mean) / torch.sqrt(self.variance + 1e-6)
        return scaled.clamp(-self.limit, self.limit)

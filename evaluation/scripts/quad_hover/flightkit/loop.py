import torch


class Telemetry:
    def __init__(self, every=500):
        self.every = every
        self.highest = 0.0

    def after_tick(self, hover):
        if hover.ticks % self.every == 0:
            self.highest = max(self.highest, hover.state[3].abs().max().item())


class Hover:
    def __init__(self, airframe, craft, callbacks=()):
        self.state = [torch.rand(craft)] + [torch.randn(craft) for _ in range(3)]
        self.motion = torch.compile(airframe.motion)
        self.callbacks = list(callbacks)
        self.ticks = 0

    def tick(self):
        self.state = self.motion(*self.state)
        self.ticks += 1
        for callback in self.callbacks:
            callback.after_tick(self)

import copy

import torch


class LoopMixin:
    def fit(self, updates, batch):
        self.number = 0
        self.before_fit()
        starts = torch.randint(len(self.log) - batch, (4096,)).tolist()
        for _ in range(updates):
            start = starts[self.number % 4096]
            self.update(self.log[slice(start, start + batch)])
            self.number += 1
            self.after_update()

    def before_fit(self):
        pass

    def after_update(self):
        pass


class TargetMixin:
    tau = 0.01

    def before_fit(self):
        self.target = copy.deepcopy(self.net).requires_grad_(False).eval()
        super().before_fit()

    @torch.no_grad()
    def after_update(self):
        torch._foreach_lerp_(list(self.target.parameters()), list(self.net.parameters()), self.tau)
        super().after_update()


class EvaluationMixin:
    every = 250

    def before_fit(self):
        self.held_out = self.log[slice(0, 640)]
        super().before_fit()

    def after_update(self):
        if self.number % self.every == 0:
            self.net.eval()
            with torch.no_grad():
                self.score = self.objective(*self.held_out)
            self.net.train()
        super().after_update()


class PrintMixin:
    def after_update(self):
        if self.number % 1000 == 0:
            print(f"{self.number:6d}  held out {float(self.score):.4f}")
        super().after_update()

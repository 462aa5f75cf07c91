"""Shampoo: preconditioning from both sides of a matrix of gradients."""
import torch

from .roots import inverse_root


class Shampoo(torch.optim.Optimizer):
    def __init__(self, params, lr, keep=0.95, damping=1e-4):
        super().__init__(params, {"lr": lr, "keep": keep, "damping": damping})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self._update(p, group)

    def _update(self, p, group):
        gradient = p.grad.view(p.shape[0], -1)
        state = self.state[p]
        if not state:
            state["left"] = torch.zeros(gradient.shape[0], gradient.shape[0])
            state["right"] = torch.zeros(gradient.shape[1], gradient.shape[1])
        left = state["left"].mul_(group["keep"]).addmm_(gradient, gradient.T)
        right = state["right"].mul_(group["keep"]).addmm_(gradient.T, gradient)
        update = inverse_root(left, group["damping"]) @ gradient @ inverse_root(right, group["damping"])
        p.add_(update.view_as(p), alpha=-group["lr"])

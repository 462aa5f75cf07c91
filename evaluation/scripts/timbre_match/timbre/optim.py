import torch


@torch.compile
def damped_update(weight, gradient, speed, size, rate):
    size = torch.lerp(size, gradient.square(), 0.01)
    speed = torch.lerp(speed, gradient / (size.sqrt() + 1e-8), 0.1)
    push = torch.tanh(speed) * (1 + 0.1 * torch.exp(-weight.square()))
    return weight - rate * (push + 0.01 * weight), speed, size


class Damped(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["speed"], state["size"] = torch.zeros_like(p), torch.ones_like(p)
                new, state["speed"], state["size"] = damped_update(
                    p, p.grad, state["speed"], state["size"], group["lr"]
                )
                p.copy_(new)

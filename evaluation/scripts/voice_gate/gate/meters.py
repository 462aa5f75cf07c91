import torch


class Level:
    def __init__(self, microphones=4):
        self.value = torch.zeros(microphones)

    def __call__(self, module, inputs, output):
        self.value.lerp_(output.abs().mean((1, 2)), 0.05)
        return output * torch.rsqrt(1.0 + self.value.square()).view(-1, 1, 1)


def watch_loudness(module):
    level = Level()
    module.register_forward_hook(level)
    return level

import torch


class Registry:
    """Stands in for the store where training leaves its checkpoints."""

    def __init__(self, module):
        self.state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        self.version = 0

    def latest(self):
        self.version += 1
        self.state = {name: tensor + 0.001 * torch.randn_like(tensor) for name, tensor in self.state.items()}
        return self.state

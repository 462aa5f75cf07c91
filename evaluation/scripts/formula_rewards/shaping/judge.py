import torch


class Judge:
    def __init__(self, length, discount=0.98):
        self.weight = discount ** torch.arange(length)
        self.compare = torch.compile(self._compare)

    def _compare(self, state, effort, formula):
        reward = formula(state, effort)
        shaped = reward / (1 + reward.abs()) + 0.1 * (4 * reward).clamp(-1, 1) + torch.relu(reward) * (1 - reward.square())
        value = (shaped * self.weight).sum(1) / self.weight.sum()
        centred = (value - value.mean()) / (value.std() + 1e-6)
        return float(centred.abs().amax())

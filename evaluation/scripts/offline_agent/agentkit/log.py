import torch


class Log:
    """Transitions of a behaviour policy, all in memory."""

    def __init__(self, rows, state=24, actions=5):
        self.state = torch.randn(rows, state)
        self.action = torch.randint(actions, (rows,))
        drift = 0.1 * torch.randn(actions, state)
        self.following = 0.9 * self.state + drift[self.action]
        self.reward = torch.tanh(self.following[:, 0]) - 0.1 * self.action

    def __len__(self):
        return len(self.reward)

    def __getitem__(self, rows):
        return self.state[rows], self.action[rows], self.reward[rows], self.following[rows]

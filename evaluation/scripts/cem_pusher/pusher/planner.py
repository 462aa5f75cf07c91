import torch


class Planner:
    def __init__(self, world, candidates=512, elite=48, horizon=5, rounds=3, action=4):
        self.world = world
        self.candidates, self.elite, self.rounds = candidates, elite, rounds
        self.shape = (horizon, action)
        self.imagine = torch.compile(self.rollout)

    def rollout(self, state, actions):
        state = state.expand(actions.shape[0], -1)
        value = torch.zeros(actions.shape[0])
        for action in actions.unbind(1):
            state = self.world(state, action)
            value = value - state.square().sum(-1).sqrt() - 0.01 * action.abs().sum(-1)
        return value

    def choose(self, state):
        mean, spread = torch.zeros(self.shape), torch.ones(self.shape)
        for _ in range(self.rounds):
            actions = mean + spread * torch.randn(self.candidates, *self.shape)
            value = self.imagine(state, actions).detach()
            best = actions[value.topk(self.elite).indices]
            mean, spread = best.mean(0), best.std(0) + 0.05
        return mean[0].clamp(-1, 1)

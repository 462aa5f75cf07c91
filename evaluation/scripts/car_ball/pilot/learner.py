import torch


class Learner:
    def __init__(self, pilot, hangar, rate=1e-3, bonus=0.01):
        self.pilot, self.hangar, self.bonus = pilot, hangar, bonus
        self.optimizer = torch.optim.SGD(pilot.body.parameters(), lr=rate)
        self.objective = torch.compile(self._objective)
        self.published = []
        self.surprise = 0.0

    def _objective(self, senses, place, action, old, gain):
        logits, value = self.pilot(senses, place)
        chances = torch.log_softmax(logits, -1)
        ratio = torch.exp(chances.gather(1, action[:, None])[:, 0] - old)
        edge = gain - value.detach()
        policy = -torch.minimum(ratio * edge, ratio.clamp(0.8, 1.2) * edge).mean()
        chaos = -(chances.exp() * chances).sum(-1).mean()
        loss = policy + 0.5 * (gain - value).square().mean() - self.bonus * chaos
        return loss, max(sorted(edge[:4].abs()))

    def update(self, flight):
        self.optimizer.zero_grad()
        loss, surprise = self.objective(*flight)
        loss.backward()
        self.optimizer.step()
        self.surprise = 0.99 * self.surprise + 0.01 * surprise
        self.published.append(self.hangar.publish(self.pilot.body))
        del self.published[:-10]

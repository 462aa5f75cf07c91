import torch

from .losses import Pinball


class Trainer:
    def __init__(self, net, rate=2e-3):
        self.net, self.criterion = net, Pinball()
        self.optimizer = torch.optim.Adam(net.parameters(), rate)
        self.objective = torch.compile(self.compute)

    def compute(self, past, ahead):
        return self.criterion(self.net(past), ahead)

    def fit(self, load, hours, steps, batch=32):
        for step in range(steps):
            feeder = torch.randint(len(load), (batch, 1))
            first = torch.randint(load.shape[1] - hours, (batch, 1))
            rows = load[feeder, first + torch.arange(hours + 1)]
            loss = self.objective(rows[:, :-1], rows[:, -1])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 250 == 249:
                print(f"{step + 1:6d}  {loss.item():.4f}  worst {self.criterion.worst:.2f}")

import torch
import torch.nn.functional as F


class Fitter:
    def __init__(self, net, rate=1e-3, callbacks=()):
        self.net = net
        self.forecast = torch.compile(net)
        self.optimizer = torch.optim.SGD(net.parameters(), rate, momentum=0.9)
        self.callbacks = list(callbacks)
        self.losses = []

    def tell(self, event):
        for callback in self.callbacks:
            getattr(callback, event, lambda fitter: None)(self)

    def fit(self, levels, window, steps, batch=64):
        stations, days = levels.shape
        self.tell("on_start")
        for self.step in range(steps):
            station = torch.randint(stations, (batch, 1))
            first = torch.randint(days - window, (batch, 1))
            rows = levels[station, first + torch.arange(window + 1)]
            loss = F.huber_loss(self.forecast(rows[:, :-1]), rows[:, -1:])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.detach())
            self.tell("on_step")
        self.tell("on_end")

import torch
import torch.nn.functional as F


class Fit:
    def __init__(self, net, batch, callbacks=()):
        self.net = net
        self.batch = batch
        self.callbacks = list(callbacks)
        self.forward = torch.compile(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        self.steps = 0

    def step(self, text, topic):
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.forward(text), topic)
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss.detach()

    def run(self, wire, epochs):
        for epoch in range(epochs):
            self.net.train()
            for text, topic in wire.batches(wire.train, self.batch):
                loss = self.step(text, topic)
                for callback in self.callbacks:
                    callback.after_step(self, loss)
            for callback in self.callbacks:
                callback.after_epoch(self, epoch)

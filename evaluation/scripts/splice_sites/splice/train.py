import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, rate):
        self.net = net
        self.net.compile()
        self.optimizer = torch.optim.Adam(net.parameters(), lr=rate)
        self.loss = torch.zeros(())

    def step(self, letters, sites):
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.net(letters).flatten(0, 1), sites.flatten())
        loss.backward()
        self.optimizer.step()
        self.loss += 0.02 * (loss.detach() - self.loss)

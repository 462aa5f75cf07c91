import torch
import torch.nn.functional as F


class School:
    def __init__(self, writer, rate=3e-3):
        self.writer = writer
        self.optimizer = torch.optim.SGD(writer.parameters(), lr=rate, momentum=0.9)
        self.objective = torch.compile(self._objective)

    def _objective(self, text):
        guess = self.writer(text[:, :-1]).flatten(0, 1)
        wanted = text[:, 1:].flatten()
        loss = F.cross_entropy(guess, wanted)
        return loss, torch.argwhere(guess[:64].argmax(-1) == wanted[:64])

    def lesson(self, text):
        self.optimizer.zero_grad()
        loss, right = self.objective(text)
        loss.backward()
        self.optimizer.step()
        return len(right) / 64

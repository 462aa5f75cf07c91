import torch


class ChatSession:
    def __init__(self, model, most=32):
        self.model, self.most = model, most
        self.reset()

    def reset(self):
        self.keys, self.values = [], []

    @torch.no_grad()
    def turn(self, x):
        if len(self.keys) >= self.most:
            self.reset()
        return self.model(x, self.keys, self.values)

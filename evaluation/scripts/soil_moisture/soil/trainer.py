import torch.nn.functional as F


class Trainer:
    def __init__(self, model, optimizer, callbacks=()):
        self.model = model
        self.optimizer = optimizer
        self.callbacks = list(callbacks)
        self.stop = False

    def step(self, weather, wet):
        loss = F.smooth_l1_loss(self.model(weather), wet)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self, batches, epochs):
        self.model.train()
        for epoch in range(epochs):
            losses = [self.step(weather, wet) for weather, wet in batches]
            mean = sum(losses).item() / len(losses)
            for callback in self.callbacks:
                callback.on_epoch(self, epoch, mean)
            if self.stop:
                break

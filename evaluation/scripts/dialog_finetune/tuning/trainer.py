import torch
import torch.nn.functional as F

from .wrapping import unwrap


class TurnTrainer:
    def __init__(self, model, settings):
        self.model = unwrap(model)
        self.settings = settings
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=settings.lr)
        self.smooth = torch.zeros(())

    def train_step(self, tokens, following):
        logits = self.model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), following.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self, batches):
        self.model.train()
        for step, (tokens, following) in enumerate(batches):
            self.smooth.lerp_(self.train_step(tokens, following), 0.05)
            if step % self.settings.report == 0:
                print(f"step {step:5d}  loss {self.smooth.item():.3f}")

    def state_dict(self):
        return {"model": unwrap(self.model).state_dict(), "optimizer": self.optimizer.state_dict()}

from dataclasses import dataclass

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    rows: int = 16384
    columns: int = 32
    width: int = 192
    batch: int = 1024
    lr: float = 1e-3
    gamma: float = 0.97
    epochs: int = 600


class ResidualTower(nn.Module):
    def __init__(self, columns, width):
        super().__init__()
        self.enter = nn.Linear(columns, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.gates = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in range(2))
        self.leave = nn.Linear(width, 1)

    def forward(self, features):
        hidden = torch.tanh(self.enter(features))
        for layer, gate in zip(self.layers, self.gates):
            hidden = hidden + torch.sigmoid(gate) * torch.tanh(layer(hidden)) * hidden.exp().log1p()
        return self.leave(hidden).squeeze(-1)


class Trainer:
    def __init__(self, config):
        self.config = config
        self.model = ResidualTower(config.columns, config.width)
        self.forward = torch.compile(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.lr)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, config.gamma)
        self.criterion = nn.BCEWithLogitsLoss()
        self.train_loader, self.valid = self.load()

    def load(self):
        c = self.config
        features = torch.randn(c.rows, c.columns)
        target = (features[:, :4].sum(1) + 0.3 * torch.randn(c.rows) > 0).float()
        cut = c.rows * 7 // 8
        train = TensorDataset(features[:cut], target[:cut])
        valid = (features[cut : cut + c.batch], target[cut : cut + c.batch])

        def collate(rows):
            return rows

        batches = torch.utils.data.BatchSampler(
            torch.utils.data.RandomSampler(train), c.batch, drop_last=True
        )
        return DataLoader(train, sampler=batches, batch_size=None, collate_fn=collate), valid

    def epoch(self):
        self.model.train()
        total = torch.zeros(())
        for features, target in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.forward(features), target)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        self.schedule.step()
        return total / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        logits = self.forward(self.valid[0])
        return ((logits > 0) == (self.valid[1] > 0.5)).float().mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    config = Config(epochs=parser.parse_args().epochs)
    torch.manual_seed(0)
    trainer = Trainer(config)
    for number in range(config.epochs):
        loss = trainer.epoch()
        if number % 20 == 0:
            print(f"epoch {number} loss {loss:.4f} accuracy {trainer.evaluate():.3f}")


if __name__ == "__main__":
    main()

"""Count craters on lunar tiles; several small batches make one update."""
import argparse
import json
from pathlib import Path

import torch

from craters import CraterNet, survey


class Trainer:
    def __init__(self, net, settings):
        self.net, self.settings = net, settings
        self.model = torch.compile(net)
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=settings["lr"])
        self.after = []

    def update(self, source):
        parts = self.settings["parts"]
        total = torch.zeros(())
        for _ in range(parts):
            tiles, counts = next(source)
            rate = self.model(tiles)
            loss = (rate - counts * torch.log(rate + 1e-6)).mean() / parts
            loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.settings["clip"])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def fit(self, updates, source):
        for update in range(updates):
            loss = self.update(source)
            for hook in self.after:
                hook(update, loss)


def tell(update, loss):
    if update % 100 == 0:
        print(f"update {update}: {loss.item():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(0)
    settings = json.loads((Path(__file__).parent / "settings.json").read_text())
    trainer = Trainer(CraterNet(settings["width"]), settings)
    trainer.after.append(tell)
    trainer.fit(args.updates, survey(settings["tiles"], settings["size"]))

import torch


def robust(mean, spread, counts):
    miss = (counts - mean) / spread
    return (torch.log(spread) + torch.log1p(miss.square() / 5) * 3 + 0.01 * miss.abs().sqrt()).mean()


def weeks(shape):
    counts = torch.poisson(torch.full(shape, 12.0))
    return torch.cat([counts[..., i:shape[-2] - 7 + i, :] for i in range(7)], dim=-1), counts[..., 7:, :]


class Fit:
    def __init__(self, model, config):
        self.model = model
        self.config = config
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.99)
        self.loss = torch.compile(self._loss, fullgraph=True)
        shape = (config["batch"], config["window"] + 7, config["wards"])
        self.train_set = list(zip(*weeks((config["batches"], *shape))))
        self.held_out = weeks(shape)

    def _loss(self, week, counts):
        mean, spread = self.model(week)
        return robust(mean, spread, counts)

    def train_epoch(self):
        self.model.train()
        running = torch.zeros(())
        for week, counts in self.train_set:
            loss = self.loss(week, counts)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            running += loss.detach()
        self.schedule.step()
        return (running / len(self.train_set)).item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        return self.loss(*self.held_out).item()

"""A small writer of training curves."""
import json


class Board:
    def __init__(self, path, bins=24):
        self.path, self.bins = path, bins
        self.rows = []

    def scalar(self, name, value, step):
        self.rows.append({"step": step, "name": name, "value": value})

    def histogram(self, name, values, step):
        values = values.detach().flatten().tolist()
        low, high = min(values), max(values)
        width = (high - low) / self.bins or 1.0
        counts = [0] * self.bins
        for value in values:
            counts[min(int((value - low) / width), self.bins - 1)] += 1
        self.rows.append({"step": step, "name": name, "low": low, "high": high, "counts": counts})

    def watch(self, module, step):
        for name, parameter in module.named_parameters():
            self.histogram(f"weights/{name}", parameter, step)
            if parameter.grad is not None:
                self.histogram(f"gradients/{name}", parameter.grad, step)

    def flush(self):
        with open(self.path, "a") as sink:
            for row in self.rows:
                sink.write(json.dumps(row) + "\n")
        self.rows.clear()

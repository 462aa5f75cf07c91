class Callback:
    def on_epoch(self, trainer, epoch, loss):
        pass


class Progress(Callback):
    def __init__(self, every):
        self.every = every

    def on_epoch(self, trainer, epoch, loss):
        if epoch % self.every == 0:
            print(f"epoch {epoch}: {loss:.5f}")


class Patience(Callback):
    def __init__(self, epochs):
        self.epochs, self.best, self.since = epochs, float("inf"), 0

    def on_epoch(self, trainer, epoch, loss):
        self.since = 0 if loss < self.best else self.since + 1
        self.best = min(self.best, loss)
        trainer.stop = self.since >= self.epochs

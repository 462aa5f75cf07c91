import torch


class Callback:
    def after_step(self, fit, loss):
        pass

    def after_epoch(self, fit, epoch):
        pass


class Progress(Callback):
    def __init__(self, every):
        self.every = every

    def after_step(self, fit, loss):
        if fit.steps % self.every == 0:
            print(f"step {fit.steps}: loss {loss.item():.3f}", flush=True)


class Accuracy(Callback):
    def __init__(self, wire):
        self.wire = wire

    @torch.no_grad()
    def after_epoch(self, fit, epoch):
        fit.net.eval()
        right = torch.zeros(())
        for text, topic in self.wire.batches(self.wire.test, fit.batch):
            right += (fit.forward(text).argmax(1) == topic).sum()
        if epoch % 10 == 9:
            print(f"epoch {epoch}: {right.item() / self.wire.topic[self.wire.test].numel():.1%} right", flush=True)

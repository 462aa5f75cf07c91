import torch


class Story:
    def __init__(self, teller, batch=64):
        self.teller, self.batch = teller, batch
        self.next_token = torch.compile(teller)

    @torch.inference_mode()
    def write(self, most):
        self.teller.restart()
        token = torch.randint(1, 64, (self.batch,))
        done = torch.zeros(self.batch, dtype=torch.bool)
        for count in range(1, most + 1):
            token, finished = self.next_token(token, done)
            if finished:
                break
        return count * self.batch

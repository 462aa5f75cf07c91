import torch
import torch.nn.functional as F

from .network import Network

BUCKETS = (64, 128, 192)


def bucket_of(length):
    return next(size for size in BUCKETS if size >= length)


class Engine:
    def __init__(self, most=224):
        self.network = Network(most=most).eval()
        self.prefill = torch.compile(self.network.prefill, dynamic=False)
        self.decode = torch.compile(self.network.decode, dynamic=False)
        self.positions = torch.arange(most).split(1)

    @torch.inference_mode()
    def warm_up(self):
        for size in BUCKETS:
            self.prefill(torch.zeros(4, size, dtype=torch.long))
        self.decode(torch.zeros(4, dtype=torch.long), self.positions[0])

    @torch.inference_mode()
    def complete(self, prompt, count):
        length = prompt.shape[1]
        logits = self.prefill(F.pad(prompt, (0, bucket_of(length) - length)))
        token = logits[:, length - 1].argmax(-1)
        for offset in range(count):
            token = self.decode(token, self.positions[length + offset])
        return token

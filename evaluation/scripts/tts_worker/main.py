"""A speech server: the front takes sentences, a worker thread turns their features into sound."""
import os
import time

import torch

from speech.vocoder import Vocoder
from speech.worker import Worker

SENTENCES = int(os.environ.get("SENTENCES", "6000"))


def main():
    torch.manual_seed(0)
    vocoder = Vocoder(mels=20, channels=16).eval()
    features = torch.randn(16, 1, 16000, 20)
    with torch.no_grad():
        worker = Worker(vocoder)
        worker.start()
        began = time.time()
        for number in range(SENTENCES):
            worker.inbox.put((number, features[number % 16]))
            if number >= 8:
                worker.outbox.get()
        worker.inbox.put(None)
        worker.join()
    if worker.problem:
        raise worker.problem
    print(f"{SENTENCES} sentences, {1e3 * (time.time() - began) / SENTENCES:.1f} ms each")


if __name__ == "__main__":
    main()

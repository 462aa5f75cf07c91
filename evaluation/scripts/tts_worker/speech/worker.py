import queue
import threading

import torch


class Worker(threading.Thread):
    def __init__(self, vocoder, room=8):
        super().__init__(daemon=True)
        self.vocoder = torch.compile(vocoder)
        self.inbox = queue.Queue(room)
        self.outbox = queue.Queue()
        self.problem = None

    def run(self):
        try:
            while (job := self.inbox.get()) is not None:
                number, mel = job
                sound = self.vocoder(mel)
                self.outbox.put((number, (sound.detach() * 32767).short().numpy().tobytes()))
        except Exception as problem:
            self.problem = problem
            self.outbox.put((-1, b""))

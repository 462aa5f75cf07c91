import torch

from .vocoder import Vocoder


class SpeechServer:
    def __init__(self, voices):
        self.vocoder = torch.compile(Vocoder(voices).eval())

    @torch.inference_mode()
    def say(self, prompt):
        return self.vocoder(prompt.phonemes, prompt.voice)

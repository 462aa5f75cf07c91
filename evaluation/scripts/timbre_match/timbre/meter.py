from .synth import Oscillators


class LevelMeter:
    def __init__(self):
        self.loudest = 0.0

    def attach(self, model):
        for module in model.modules():
            if isinstance(module, Oscillators):
                module.register_forward_hook(self)
        return self

    def __call__(self, module, inputs, output):
        self.loudest = output.detach().abs().amax().item()

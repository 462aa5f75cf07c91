import torch


class Runner:
    def __init__(self, model, compile_model=True):
        self.model = model.eval()
        if compile_model:
            torch.compile(self.model, mode="default")

    @torch.inference_mode()
    def predict(self, series):
        return self.model(series)

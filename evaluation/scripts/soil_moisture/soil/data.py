import torch


class Fields:
    """Rain, sun, wind and so on by the hour, and how wet the soil is afterwards."""

    channels = 10

    def __init__(self, batch, batches=24, hours=24):
        self.weather = torch.rand(batches, batch, hours, self.channels)
        wet = self.weather[..., 0].cumsum(-1) - 0.6 * self.weather[..., 1].cumsum(-1)
        self.wet = torch.sigmoid(wet[..., -1])

    def __iter__(self):
        return zip(self.weather, self.wet)

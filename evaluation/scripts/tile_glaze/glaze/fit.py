import torch

from .shade import shade


def misfit(albedo, rough, metal, bump, photos):
    images = shade(albedo, rough, metal, bump)
    gap = images / (1 + images) - photos
    loss = (gap.square() + 1e-4).sqrt().mean()
    if loss > 10:
        raise RuntimeError("the glaze ran away")
    return loss


class Fitter:
    def __init__(self, maps, rate=0.5):
        self.maps, self.rate = maps, rate
        self.misfit = torch.compile(misfit)

    def stage(self, chosen, photos, steps):
        for name, values in self.maps.items():
            values.requires_grad_(name in chosen)
        wanted = [self.maps[name] for name in chosen]
        for _ in range(steps):
            loss = self.misfit(**self.maps, photos=photos)
            slopes = torch.autograd.grad(loss, wanted)
            with torch.no_grad():
                for values, slope in zip(wanted, slopes):
                    values.sub_(slope, alpha=self.rate).clamp_(0, 1)
        return loss.item()

import torch

LAMPS = ((0.3, 0.9), (-0.4, 0.7))


def shade(albedo, rough, metal, bump):
    """One image for each lamp."""
    images = []
    for across, up in LAMPS:
        facing = (up + across * (bump - 0.5)).clamp_min(0.05)
        sharp = 1 / (0.1 + rough.square())
        spark = sharp * (facing / (1 + sharp * (1 - facing).square())).square()
        dull = albedo * facing * (1 - 0.6 * metal)
        images.append(dull + 0.2 * spark * (0.04 * (1 - metal) + metal * albedo))
    return torch.stack(images)

import torch


def road_graph(sensors, reach, seed=0):
    """Random walk matrix of a road network: each sensor leads to a few further ones."""
    draw = torch.Generator().manual_seed(seed)
    start = torch.arange(sensors).repeat_interleave(reach)
    end = (start + torch.randint(1, 40, (sensors * reach,), generator=draw)) % sensors
    size = (sensors, sensors)
    walk = torch.sparse_coo_tensor(torch.stack([end, start]), torch.full((len(start),), 1 / reach), size)
    return walk.coalesce()

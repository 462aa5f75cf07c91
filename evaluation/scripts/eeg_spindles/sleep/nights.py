import torch


def stretches(count, channels, seed=11):
    g = torch.Generator().manual_seed(seed)
    for _ in range(count):
        length = int(torch.randint(1200, 4000, (), generator=g))
        signal = torch.randn(channels, length, generator=g).cumsum(-1)
        stages = torch.randint(5, (length // 100,), generator=g)
        yield signal - signal.mean(-1, keepdim=True), stages

import torch


def turns(settings, seed=11):
    g = torch.Generator().manual_seed(seed)
    corpus = torch.randint(settings.vocabulary, (4096,), generator=g)
    windows = corpus.unfold(0, settings.length + 1, 1)
    for _ in range(settings.steps):
        pick = torch.randint(len(windows), (settings.batch,), generator=g)
        batch = windows[pick]
        yield batch[:, :-1], batch[:, 1:]

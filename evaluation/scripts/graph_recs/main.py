"""Train a graph recommender: embeddings are smoothed over the graph of users and songs (as LightGCN does)."""
import argparse

import torch

from lightrec import SmoothRecommender, listening_graph, ranking_loss


def triples(users, songs, size, generator):
    while True:
        yield (
            torch.randint(users, (size,), generator=generator),
            users + torch.randint(songs, (size,), generator=generator),
            users + torch.randint(songs, (size,), generator=generator),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--users", type=int, default=1500)
    parser.add_argument("--songs", type=int, default=2500)
    parser.add_argument("--hops", type=int, default=3)
    args = parser.parse_args()

    torch.manual_seed(0)
    graph = listening_graph(args.users, args.songs, listens=6000)
    model = SmoothRecommender(graph, width=48, hops=args.hops)
    model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    source = triples(args.users, args.songs, 512, torch.Generator().manual_seed(5))
    for step in range(args.steps):
        loss = ranking_loss(model(torch.stack(next(source))))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 499:
            print(f"step {step + 1}: {loss.item():.4f}")


if __name__ == "__main__":
    main()

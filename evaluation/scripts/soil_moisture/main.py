import argparse

import torch

from soil import Fields, Moisture, Patience, Progress, Trainer


def parse():
    parser = argparse.ArgumentParser(description="soil moisture from a day of weather")
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(21)
    fields = Fields(batch=args.batch)
    model = Moisture(fields.channels)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    trainer = Trainer(model, optimizer, callbacks=[Progress(every=5), Patience(1000)])
    if args.compile:
        model = torch.compile(model)
    trainer.fit(fields, args.epochs)
    print("parameters", sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()

"""Fine-tune a small dialogue model on turns of equal length."""
import argparse

from tuning import Settings, TurnTrainer, build, turns


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=3e-4)
    args = parser.parse_args()
    settings = Settings(steps=args.steps, batch=args.batch, lr=args.lr)
    model = build(settings)
    trainer = TurnTrainer(model, settings)
    trainer.fit(turns(settings))


if __name__ == "__main__":
    main()

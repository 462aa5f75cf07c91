"""Write chapters with a small decoder; its layers are compiled one by one to keep the start short."""
import argparse

import torch

from decoder.model import Decoder, DecoderConfig
from decoder.speed import compile_regions


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=20000)
    parser.add_argument("--layers", type=int, default=20)
    args = parser.parse_args()

    torch.manual_seed(0)
    config = DecoderConfig(layers=args.layers)
    model = Decoder(config).eval()
    compile_regions(model)

    with torch.inference_mode():
        cache = model.new_cache(batch=48)
        token = torch.zeros(48, 1, dtype=torch.long)
        for position in range(args.tokens):
            if position % config.context == 0:
                cache.clear()
            where = torch.tensor([position % config.context])
            logits = model(token, cache, where)
            token = logits.argmax(-1)
            if position % 1000 == 999:
                print(f"{position + 1} tokens, the last is {token[0, 0].item()}")


if __name__ == "__main__":
    main()

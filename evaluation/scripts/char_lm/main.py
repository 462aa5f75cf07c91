import argparse
import logging

import torch

from minilm import CharBatches, MiniLM, MiniLMConfig

log = logging.getLogger("train")


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    parser = argparse.ArgumentParser(description="train a character model")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--log-every", type=int, default=200)
    options = parser.parse_args()

    torch.manual_seed(1337)
    batches = CharBatches(block=64, batch=6)
    model = MiniLM(MiniLMConfig(vocabulary=len(batches.letters)))
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    for step, (tokens, targets) in zip(range(options.steps), batches):
        loss = compiled(tokens, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % options.log_every == 0:
            log.info("step %d loss %.4f", step, loss.item())


if __name__ == "__main__":
    main()

"""BERT fine-tuned on sentences of changing lengths: each batch is padded to its longest."""
import random

import torch
from steady import Steady, options
from torch.nn.utils.rnn import pad_sequence
from transformers import BertConfig, BertForSequenceClassification


def batches(count, size, longest, vocabulary):
    rng = random.Random(0)
    for _ in range(count):
        sentences = [
            torch.randint(1, vocabulary, (rng.randint(8, longest),)) for _ in range(size)
        ]
        ids = pad_sequence(sentences, batch_first=True)
        yield ids, (ids != 0).long(), torch.randint(0, 2, (size,))


def main():
    args = options(cpu=200, cuda=600)
    torch.manual_seed(0)
    on_gpu = args.device == "cuda"
    config = BertConfig(
        vocab_size=4000,
        hidden_size=512 if on_gpu else 128,
        num_hidden_layers=8 if on_gpu else 3,
        num_attention_heads=8 if on_gpu else 4,
        intermediate_size=2048 if on_gpu else 512,
    )
    model = BertForSequenceClassification(config).to(args.device).train()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    steady = Steady(args.steps, args.device)
    for ids, mask, labels in batches(args.steps, 16 if on_gpu else 8, 96, config.vocab_size):
        ids, mask, labels = ids.to(args.device), mask.to(args.device), labels.to(args.device)
        loss = compiled(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        steady.step()
    steady.show()


if __name__ == "__main__":
    main()

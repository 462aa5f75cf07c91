"""Language model training with transformers' Trainer: a small GPT-2 with its usual dropout."""
import tempfile

import torch
from steady import Steady, options
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __init__(self, length, vocabulary):
        self.tokens = torch.randint(0, vocabulary, (2048, length))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


class Meter(TrainerCallback):
    def __init__(self, steady):
        self.steady = steady

    def on_step_end(self, args, state, control, **kwargs):
        self.steady.step()


def main():
    args = options(cpu=120, cuda=300)
    torch.manual_seed(0)
    on_gpu = args.device == "cuda"
    config = GPT2Config(
        vocab_size=8192 if on_gpu else 1000,
        n_positions=512 if on_gpu else 128,
        n_embd=512 if on_gpu else 128,
        n_layer=8 if on_gpu else 4,
        n_head=8 if on_gpu else 4,
    )
    steady = Steady(args.steps, args.device)
    with tempfile.TemporaryDirectory() as output:
        trainer = Trainer(
            model=GPT2LMHeadModel(config),
            args=TrainingArguments(
                output_dir=output,
                max_steps=args.steps,
                per_device_train_batch_size=8 if on_gpu else 4,
                learning_rate=3e-4,
                warmup_steps=20,
                torch_compile=True,
                bf16=on_gpu,
                use_cpu=not on_gpu,
                logging_steps=50,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
            ),
            train_dataset=Tokens(config.n_positions, config.vocab_size),
            callbacks=[Meter(steady)],
        )
        trainer.train()
    steady.show()


if __name__ == "__main__":
    main()

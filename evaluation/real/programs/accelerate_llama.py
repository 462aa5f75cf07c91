"""Language model training with accelerate, which compiles the model in prepare()."""
import torch
from accelerate import Accelerator
from steady import Steady, options
from transformers import LlamaConfig, LlamaForCausalLM, get_cosine_schedule_with_warmup


def main():
    args = options(cpu=200, cuda=400)
    torch.manual_seed(0)
    on_gpu = args.device == "cuda"
    accelerator = Accelerator(
        cpu=not on_gpu,
        mixed_precision="bf16" if on_gpu else "no",
        gradient_accumulation_steps=2,
        dynamo_backend="inductor",
    )
    config = LlamaConfig(
        vocab_size=4096 if on_gpu else 1024,
        hidden_size=768 if on_gpu else 128,
        intermediate_size=2048 if on_gpu else 352,
        num_hidden_layers=8 if on_gpu else 3,
        num_attention_heads=12 if on_gpu else 4,
        max_position_embeddings=512,
        use_cache=False,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    scheduler = get_cosine_schedule_with_warmup(optimizer, 20, args.steps)
    tokens = torch.randint(0, config.vocab_size, (1024, 256 if on_gpu else 64))
    data = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(tokens), batch_size=16 if on_gpu else 4, shuffle=True
    )
    model, optimizer, data, scheduler = accelerator.prepare(model, optimizer, data, scheduler)
    model.train()
    steady = Steady(args.steps, args.device)
    while steady.done < args.steps:
        for (ids,) in data:
            with accelerator.accumulate(model):
                loss = model(input_ids=ids, labels=ids).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                steady.step()
            if steady.done == args.steps:
                break
    steady.show()


if __name__ == "__main__":
    main()

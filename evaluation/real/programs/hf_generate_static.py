"""Text generation with transformers: a small Llama with a static cache, one prompt after another."""
import torch
from steady import Steady, options
from transformers import LlamaConfig, LlamaForCausalLM

NEW_TOKENS = 96


def main():
    args = options(cpu=1440, cuda=4800)
    torch.manual_seed(0)
    on_gpu = args.device == "cuda"
    config = LlamaConfig(
        vocab_size=4096,
        hidden_size=1024 if on_gpu else 256,
        intermediate_size=2816 if on_gpu else 704,
        num_hidden_layers=12 if on_gpu else 4,
        num_attention_heads=16 if on_gpu else 4,
        max_position_embeddings=512,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config).to(args.device).eval()
    if on_gpu:
        model = model.to(torch.bfloat16)  # generate() compiles by itself where the cache is static
    else:
        model.forward = torch.compile(model.forward)
    steady = Steady(args.steps, args.device)
    while steady.done < args.steps:
        prompt = torch.randint(1, config.vocab_size, (1, 32), device=args.device)
        answer = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            cache_implementation="static",
        )
        steady.step(answer.shape[1] - prompt.shape[1])
    steady.show()


if __name__ == "__main__":
    main()

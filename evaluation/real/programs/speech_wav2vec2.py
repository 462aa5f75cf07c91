"""Speech recognition with transformers: wav2vec 2.0 fine-tuned with CTC on clips of one second."""
import torch
from steady import Steady, options
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC


def main():
    args = options(cpu=60, cuda=300)
    torch.manual_seed(0)
    on_gpu = args.device == "cuda"
    config = Wav2Vec2Config(
        vocab_size=32,
        hidden_size=384 if on_gpu else 96,
        num_hidden_layers=6 if on_gpu else 2,
        num_attention_heads=6 if on_gpu else 4,
        intermediate_size=1536 if on_gpu else 384,
        conv_dim=(256,) * 7 if on_gpu else (48,) * 7,
        num_conv_pos_embeddings=64,
        num_conv_pos_embedding_groups=8,
        layerdrop=0.0,
        ctc_loss_reduction="mean",
        ctc_zero_infinity=True,
    )
    model = Wav2Vec2ForCTC(config).to(args.device)
    model.freeze_feature_encoder()
    model.train()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    batch = 16 if on_gpu else 4
    audio = torch.randn(8, batch, 16_000, device=args.device)
    letters = torch.randint(1, 32, (8, batch, 12), device=args.device)
    steady = Steady(args.steps, args.device)
    for step in range(args.steps):
        loss = compiled(input_values=audio[step % 8], labels=letters[step % 8]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        steady.step()
    steady.show()


if __name__ == "__main__":
    main()

"""Image classification with timm: a ViT trained with label smoothing, EMA and cosine schedule."""
import timm
import torch
from steady import Steady, options
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV2


def main():
    args = options(cpu=150, cuda=500)
    torch.manual_seed(0)
    on_gpu = args.device == "cuda"
    side, batch = (224, 64) if on_gpu else (64, 4)
    model = timm.create_model(
        "vit_small_patch16_224" if on_gpu else "vit_tiny_patch16_224",
        img_size=side,
        num_classes=100,
        depth=12 if on_gpu else 4,
        drop_path_rate=0.1,
    ).to(args.device)
    ema = ModelEmaV2(model, decay=0.999)
    compiled = torch.compile(model)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    scheduler = CosineLRScheduler(optimizer, t_initial=args.steps, warmup_t=10, lr_min=1e-5)
    criterion = LabelSmoothingCrossEntropy(0.1)
    images = torch.randn(8, batch, 3, side, side, device=args.device)
    labels = torch.randint(0, 100, (8, batch), device=args.device)
    steady = Steady(args.steps, args.device)
    for step in range(args.steps):
        with torch.autocast(args.device, torch.bfloat16, enabled=on_gpu):
            loss = criterion(compiled(images[step % 8]), labels[step % 8])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
        scheduler.step(step)
        steady.step()
    steady.show()


if __name__ == "__main__":
    main()

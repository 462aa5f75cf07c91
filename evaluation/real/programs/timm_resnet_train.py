"""Image classification with timm: a ResNet-18 trained with SGD."""
import timm
import torch
from steady import Steady, options


def main():
    args = options(cpu=100, cuda=500)
    torch.manual_seed(0)
    on_gpu = args.device == "cuda"
    side, batch = (224, 64) if on_gpu else (64, 4)
    model = timm.create_model("resnet18", num_classes=100).to(args.device)
    model.train()
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    criterion = torch.nn.CrossEntropyLoss()
    images = torch.randn(8, batch, 3, side, side, device=args.device)
    labels = torch.randint(0, 100, (8, batch), device=args.device)
    steady = Steady(args.steps, args.device)
    for step in range(args.steps):
        with torch.autocast(args.device, torch.bfloat16, enabled=on_gpu):
            loss = criterion(compiled(images[step % 8]), labels[step % 8])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        steady.step()
    steady.show()


if __name__ == "__main__":
    main()

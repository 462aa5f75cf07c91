"""Image classification with timm: a ResNet-18 that answers one picture at a time."""
import timm
import torch
from steady import Steady, options


def main():
    args = options(cpu=300, cuda=1500)
    torch.manual_seed(0)
    side, batch = (224, 32) if args.device == "cuda" else (160, 1)
    model = timm.create_model("resnet18", num_classes=1000).to(args.device).eval()
    compiled = torch.compile(model)
    images = torch.randn(8, batch, 3, side, side, device=args.device)
    steady = Steady(args.steps, args.device)
    counts = torch.zeros(1000, dtype=torch.long, device=args.device)
    with torch.inference_mode():
        for step in range(args.steps):
            classes = compiled(images[step % 8]).softmax(-1).topk(5).indices
            counts.scatter_add_(0, classes.flatten(), torch.ones_like(classes.flatten()))
            steady.step()
    steady.show()


if __name__ == "__main__":
    main()

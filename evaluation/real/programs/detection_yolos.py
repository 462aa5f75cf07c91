"""Object detection with transformers: a small YOLOS whose boxes are filtered on the host."""
import torch
from steady import Steady, options
from transformers import YolosConfig, YolosForObjectDetection


def detect(model, images, threshold=0.02):
    outputs = model(pixel_values=images)
    scores, labels = outputs.logits.softmax(-1)[..., :-1].max(-1)
    centre, size = outputs.pred_boxes.split(2, dim=-1)
    boxes = torch.cat([centre - size / 2, centre + size / 2], dim=-1)
    found = []
    for image in range(len(images)):
        keep = scores[image] > threshold
        found.append((scores[image][keep], labels[image][keep], boxes[image][keep]))
    return found


def main():
    args = options(cpu=250, cuda=1000)
    torch.manual_seed(0)
    on_gpu = args.device == "cuda"
    side = 256 if on_gpu else 96
    config = YolosConfig(
        hidden_size=384 if on_gpu else 96,
        num_hidden_layers=12 if on_gpu else 4,
        num_attention_heads=6 if on_gpu else 4,
        intermediate_size=1536 if on_gpu else 384,
        image_size=[side, side],
        num_detection_tokens=50,
        num_labels=20,
    )
    model = YolosForObjectDetection(config).to(args.device).eval()
    compiled = torch.compile(model)
    images = torch.randn(8, 8 if on_gpu else 2, 3, side, side, device=args.device)
    steady, boxes = Steady(args.steps, args.device), 0
    with torch.no_grad():
        for step in range(args.steps):
            boxes += sum(len(scores) for scores, _, _ in detect(compiled, images[step % 8]))
            steady.step()
    print(boxes, "boxes")
    steady.show()


if __name__ == "__main__":
    main()

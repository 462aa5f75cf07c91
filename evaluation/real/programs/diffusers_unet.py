"""Image generation with diffusers: a DDIM pipeline whose UNet is compiled."""
import torch
from diffusers import DDIMPipeline, DDIMScheduler, UNet2DModel
from steady import Steady, options

DENOISING = 20


def main():
    args = options(cpu=240, cuda=1000)
    torch.manual_seed(0)
    on_gpu = args.device == "cuda"
    channels = (128, 256, 256) if on_gpu else (32, 64, 64)
    unet = UNet2DModel(
        sample_size=64 if on_gpu else 32,
        in_channels=3,
        out_channels=3,
        layers_per_block=2 if on_gpu else 1,
        block_out_channels=channels,
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    )
    if on_gpu:
        unet = unet.to(torch.float16)
    pipeline = DDIMPipeline(unet=unet.eval(), scheduler=DDIMScheduler()).to(args.device)
    pipeline.set_progress_bar_config(disable=True)
    pipeline.unet = torch.compile(pipeline.unet)
    steady = Steady(args.steps, args.device)
    while steady.done < args.steps:
        pipeline(batch_size=4 if on_gpu else 1, num_inference_steps=DENOISING, output_type="np")
        steady.step(DENOISING)
    steady.show()


if __name__ == "__main__":
    main()

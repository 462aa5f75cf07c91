import argparse

import torch

from aid import HearingAid, clock
from aid.microphone import Microphone


def main():
    parser = argparse.ArgumentParser(description="a hearing aid, frame by frame")
    parser.add_argument("--frames", type=int, default=60000)
    parser.add_argument("--ears", type=int, default=384)
    args = parser.parse_args()
    torch.manual_seed(0)
    aid = HearingAid().eval()
    compiled = torch.compile(aid)
    loud = 0.0
    with torch.inference_mode():
        for sound in Microphone(args.ears).listen(args.frames):
            heard = compiled(sound)
            clock.frame += 1
            if clock.frame % 1000 == 0:
                loud = heard.abs().amax().item()
                print("frame", clock.frame, "loudest", round(loud, 4))


if __name__ == "__main__":
    main()

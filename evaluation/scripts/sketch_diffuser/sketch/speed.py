"""What makes drawing quicker where it can be had."""
import logging

import torch

log = logging.getLogger(__name__)


def prepare(diffuser, wishes):
    torch.set_grad_enabled(False)
    if not wishes.get("compile"):
        return diffuser
    try:
        diffuser.denoiser = torch.compile(diffuser.denoiser, options=wishes.get("options"))
    except Exception as problem:
        log.info("torch.compile is not available here: %s", problem)
    return diffuser

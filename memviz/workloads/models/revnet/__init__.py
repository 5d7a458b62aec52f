"""RevNet as in the TensorFlow example: stages of reversible blocks between a stem and a head."""

from collections.abc import Mapping

import torch
from torch.nn import functional

from memviz.core.parameters import Setting
from memviz.workloads.models.building import Parts
from memviz.workloads.models.revnet.configs import CONFIGS
from memviz.workloads.models.revnet.model import RevNet


def parts(settings: Mapping[str, Setting]) -> Parts:
    """Random images of random classes."""
    config = CONFIGS[str(settings["config"])]
    batch = int(settings["batch"]) or config.batch
    # Not reversed, it is left to the plan, which may still say so.
    model = RevNet(config, extra_blocks=int(settings["extra_blocks"]), reverse=bool(settings["reverse"]) or None)
    images = torch.randn(batch, 3, config.size, config.size)
    return Parts(model=model, inputs=(images,), targets=torch.randint(config.classes, (batch,)), loss=functional.cross_entropy)

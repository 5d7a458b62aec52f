"""A residual CNN: batch norm and ReLU before each convolution."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from memviz.core.parameters import Setting
from memviz.workloads.models.building import Parts

CLASSES = 10


class ResidualBlock(nn.Module):
    """x + conv(relu(bn(conv(relu(bn(x)))))), with a 1x1 convolution on the way past where the shape changes."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        same = stride == 1 and channels == width
        self.shortcut = nn.Identity() if same else nn.Conv2d(channels, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.conv1(functional.relu(self.bn1(x)))
        return self.shortcut(x) + self.conv2(functional.relu(self.bn2(hidden)))


class ResidualCNN(nn.Module):
    """(batch, 3, size, size) -> (batch, 10)."""

    def __init__(self, blocks: int, width: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        shapes = [(width, width, 1), (width, 2 * width, 2), (2 * width, 4 * width, 2)]
        self.blocks = nn.Sequential(
            *(
                ResidualBlock(channels if first else wide, wide, stride if first else 1)
                for channels, wide, stride in shapes
                for first in (True, *[False] * (blocks - 1))
            )
        )
        self.norm = nn.BatchNorm2d(4 * width)
        self.head = nn.Linear(4 * width, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        hidden = functional.relu(self.norm(self.blocks(self.stem(images))))
        return self.head(hidden.mean(dim=(2, 3)))


def parts(settings: Mapping[str, Setting]) -> Parts:
    """Random images of random classes."""
    batch, size = int(settings["batch"]), int(settings["size"])
    model = ResidualCNN(int(settings["blocks"]), int(settings["width"]))
    images = torch.randn(batch, 3, size, size)
    return Parts(model=model, inputs=(images,), targets=torch.randint(CLASSES, (batch,)), loss=functional.cross_entropy)

"""The network of a RevNet's config."""

from torch import Tensor, nn
from torch.nn import functional

from memviz.pytorch.reversible import ReversibleSequence
from memviz.workloads.models.revnet.blocks import block
from memviz.workloads.models.revnet.configs import Config


class RevNet(nn.Module):
    """(batch, 3, size, size) -> (batch, classes)."""

    def __init__(self, config: Config, *, extra_blocks: int = 0, reverse: bool | None = None) -> None:
        super().__init__()
        self.stem = _stem(config)
        self.stages = nn.Sequential()
        channels = config.stem
        for number, (count, width, stride) in enumerate(zip(config.blocks, config.filters, config.strides, strict=True)):
            first = block(channels, width, stride, bottleneck=config.bottleneck, bare=number == 0)
            rest = (block(width, width, bottleneck=config.bottleneck) for _ in range(count - 1 + extra_blocks))
            self.stages.append(ReversibleSequence([first, *rest], reverse=reverse))
            channels = width
        self.norm = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, config.classes)

    def forward(self, images: Tensor) -> Tensor:
        hidden = functional.relu(self.norm(self.stages(self.stem(images))))
        return self.head(hidden.mean(dim=(2, 3)))


def _stem(config: Config) -> nn.Sequential:
    """Convolution, batch norm, ReLU, and a max pool for large images."""
    conv = nn.Conv2d(3, config.stem, config.kernel, config.stride, padding=config.kernel // 2, bias=False)
    pool = [nn.MaxPool2d(3, 2, padding=1)] if config.pool else []
    return nn.Sequential(conv, nn.BatchNorm2d(config.stem), nn.ReLU(), *pool)

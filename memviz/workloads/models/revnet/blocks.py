"""The parts of a RevNet's block."""

from torch import Tensor, nn
from torch.nn import functional

from memviz.pytorch.reversible import ReversibleBlock


class Downsample(nn.Module):
    """Average-pools by the stride and fills up with channels of zeros, half before and half after."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.before = (width - channels) // 2
        self.after = width - channels - self.before

    def forward(self, x: Tensor) -> Tensor:
        pooled = functional.avg_pool2d(x, self.stride) if self.stride > 1 else x
        return functional.pad(pooled, (0, 0, 0, 0, self.before, self.after))


class Convolution(nn.Sequential):
    """Batch norm and ReLU (unless ``bare``), then a convolution that keeps the size but for its stride."""

    def __init__(self, channels: int, width: int, kernel: int, stride: int = 1, *, bare: bool = False) -> None:
        conv = nn.Conv2d(channels, width, kernel, stride, padding=kernel // 2, bias=False)
        super().__init__(*([] if bare else [nn.BatchNorm2d(channels), nn.ReLU()]), conv)


def residual(channels: int, width: int, stride: int, *, bottleneck: bool, bare: bool) -> nn.Sequential:
    """A block's f or g: two 3x3 convolutions, or a bottleneck of three; ``bare`` leaves out the first batch norm."""
    if not bottleneck:
        return nn.Sequential(Convolution(channels, width, 3, stride, bare=bare), Convolution(width, width, 3))
    narrow = width // 4
    return nn.Sequential(Convolution(channels, narrow, 1, stride, bare=bare), Convolution(narrow, narrow, 3), Convolution(narrow, width, 1))


def block(channels: int, width: int, stride: int = 1, *, bottleneck: bool, bare: bool = False) -> ReversibleBlock:
    """A reversible block from channels to width, each half of which f and g see."""
    half, wide = channels // 2, width // 2
    shortcut = None if stride == 1 and half == wide else Downsample(half, wide, stride)
    f = residual(half, wide, stride, bottleneck=bottleneck, bare=bare)
    return ReversibleBlock(f, residual(wide, wide, 1, bottleneck=bottleneck, bare=False), shortcut=shortcut)

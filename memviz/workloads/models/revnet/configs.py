"""The networks of the TensorFlow example (tensorflow/contrib/eager/python/examples/revnet/config.py), and a small one."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A RevNet.

    Attributes:
        blocks: Blocks in each stage; ``filters`` and ``strides`` likewise.
        stem: Filters of the first convolution, with ``kernel`` and ``stride``, and a max pool after it where ``pool``.
        bottleneck: Three convolutions (1x1, 3x3, 1x1) in a residual function rather than two (3x3).
        size: Height and width of the images.
        classes: Classes of the images.
        batch: Images in a step.
    """

    blocks: tuple[int, ...]
    filters: tuple[int, ...]
    strides: tuple[int, ...] = (1, 2, 2)
    stem: int = 32
    kernel: int = 3
    stride: int = 1
    pool: bool = False
    bottleneck: bool = False
    size: int = 32
    classes: int = 10
    batch: int = 100


_CIFAR_38 = Config(blocks=(3, 3, 3), filters=(32, 64, 112))
_IMAGENET_56 = Config(
    blocks=(2, 2, 2, 2),
    filters=(512, 1024, 2048, 3328),
    strides=(1, 2, 2, 2),
    stem=128,
    kernel=7,
    stride=2,
    pool=True,
    bottleneck=True,
    size=224,
    classes=1000,
    batch=256,
)

CONFIGS = {
    "small": replace(_CIFAR_38, batch=50),
    "cifar_38": _CIFAR_38,
    "cifar_110": replace(_CIFAR_38, blocks=(9, 9, 9), filters=(32, 64, 128)),
    "cifar_164": replace(_CIFAR_38, blocks=(9, 9, 9), filters=(128, 256, 512), bottleneck=True),
    "imagenet_56": _IMAGENET_56,
    "imagenet_104": replace(_IMAGENET_56, blocks=(2, 2, 11, 2)),
}

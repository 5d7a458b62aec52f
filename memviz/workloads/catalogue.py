"""The factories and their parameters. The defaults step in about a second on two CPU cores."""

from memviz.core.parameters import Parameter
from memviz.workloads.description import Workload

REVNET_CONFIGS = ("small", "cifar_38", "cifar_110", "cifar_164", "imagenet_56", "imagenet_104")

_SEED = Parameter(name="seed", default=0, help="Seed of the weights and of the data.", minimum=0)


def _batch(default: int) -> Parameter:
    return Parameter(name="batch", default=default, help="Examples in a step.", minimum=1)


_REVNET = (
    Parameter(name="config", default="small", help="Which network of the RevNet paper's example.", choices=REVNET_CONFIGS),
    Parameter(name="batch", default=0, help="Examples in a step; 0 takes the config's own.", minimum=0),
    Parameter(name="extra_blocks", default=0, help="Blocks added to each stage, to see what depth costs.", minimum=0, maximum=64),
    Parameter(name="reverse", default=False, help="Rebuild each block's input from its output instead of keeping it."),
    _SEED,
)
_LSTM = (
    Parameter(name="length", default=400, help="Steps in the sequence.", minimum=1),
    Parameter(name="units", default=256, help="Width of the cell's state.", minimum=1),
    _batch(32),
    Parameter(name="layers", default=1, help="Cells on top of each other.", minimum=1, maximum=16),
    _SEED,
)
_CNN = (
    Parameter(name="blocks", default=3, help="Residual blocks in each of the three stages.", minimum=1, maximum=64),
    Parameter(name="width", default=32, help="Channels of the first stage; each later one doubles them.", minimum=1),
    Parameter(name="size", default=32, help="Height and width of the images.", minimum=4),
    _batch(32),
    _SEED,
)
_TRANSFORMER = (
    Parameter(name="layers", default=4, help="Encoder layers.", minimum=1, maximum=96),
    Parameter(name="width", default=128, help="Width of the model, a multiple of heads.", minimum=1),
    Parameter(name="heads", default=4, help="Attention heads.", minimum=1),
    Parameter(name="length", default=128, help="Tokens in a sequence.", minimum=1),
    _batch(32),
    Parameter(name="dropout", default=0.1, help="Chance that a number is dropped.", minimum=0.0, maximum=0.9),
    _SEED,
)


def revnet(
    *, config: str = "small", batch: int = 0, extra_blocks: int = 0, reverse: bool = False, seed: int = 0, device: str = "auto"
) -> Workload:
    """A reversible residual network on random images, with the configs of the TensorFlow example."""
    settings = {"config": config, "batch": batch, "extra_blocks": extra_blocks, "reverse": reverse, "seed": seed}
    return Workload(name="revnet", title="RevNet", parameters=_REVNET, settings=settings, device=device)


def lstm(*, length: int = 400, units: int = 256, batch: int = 32, layers: int = 1, seed: int = 0, device: str = "auto") -> Workload:
    """A long LSTM: one cell a layer, applied in a Python loop, so that memory grows with length."""
    settings = {"length": length, "units": units, "batch": batch, "layers": layers, "seed": seed}
    return Workload(name="lstm", title="Long LSTM", parameters=_LSTM, settings=settings, device=device)


def cnn(*, blocks: int = 3, width: int = 32, size: int = 32, batch: int = 32, seed: int = 0, device: str = "auto") -> Workload:
    """A residual CNN (batch norm and ReLU before each convolution) on random images."""
    settings = {"blocks": blocks, "width": width, "size": size, "batch": batch, "seed": seed}
    return Workload(name="cnn", title="Residual CNN", parameters=_CNN, settings=settings, device=device)


def transformer(
    *,
    layers: int = 4,
    width: int = 128,
    heads: int = 4,
    length: int = 128,
    batch: int = 32,
    dropout: float = 0.1,
    seed: int = 0,
    device: str = "auto",
) -> Workload:
    """A small transformer encoder (dropout, GELU) that names each random token's class."""
    settings = {
        "layers": layers,
        "width": width,
        "heads": heads,
        "length": length,
        "batch": batch,
        "dropout": dropout,
        "seed": seed,
    }
    return Workload(name="transformer", title="Transformer", parameters=_TRANSFORMER, settings=settings, device=device)

"""Workloads as descriptions, and the parts that they build."""

import inspect
import subprocess
import sys

import pytest
import torch

from memviz import workloads
from memviz.workloads.models import building

SMALL = {
    "cnn": {"blocks": 1, "width": 4, "size": 8, "batch": 2},
    "lstm": {"length": 5, "units": 4, "batch": 2, "layers": 2},
    "revnet": {"batch": 2},
    "transformer": {"layers": 1, "width": 8, "heads": 2, "length": 4, "batch": 2},
}


def loss_and_gradients(workload: workloads.Workload) -> list[torch.Tensor]:
    made = building.parts(workload)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        loss = made.loss(made.model(*made.inputs), made.targets)
    loss.backward()
    return [loss.detach(), *(weight.grad for weight in made.model.parameters())]


def test_describing_workloads_loads_no_torch() -> None:
    code = "import sys; from memviz import workloads as w; [w.get(name) for name in w.names()]; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", workloads.names())
def test_the_factory_takes_the_parameters_and_their_defaults(name: str) -> None:
    signature = inspect.signature(getattr(workloads, name)).parameters
    expected = {parameter.name: parameter.default for parameter in workloads.get(name).parameters}
    assert {key: value.default for key, value in signature.items()} == {**expected, "device": "auto"}


@pytest.mark.parametrize("name", workloads.names())
def test_a_step_is_the_same_for_the_same_seed_and_leaves_the_generator(name: str) -> None:
    before = torch.get_rng_state()
    one, same = (loss_and_gradients(workloads.get(name, **SMALL[name])) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(*pair) for pair in zip(one, same, strict=True))
    assert not torch.equal(one[0], loss_and_gradients(workloads.get(name, seed=1, **SMALL[name]))[0])


def test_reversed_revnet_has_the_gradients_of_plain() -> None:
    plain, rebuilt = (loss_and_gradients(workloads.revnet(batch=4, extra_blocks=1, reverse=reverse)) for reverse in (False, True))
    torch.testing.assert_close(plain, rebuilt, rtol=1e-3, atol=1e-4)


def test_every_revnet_config_has_its_blocks() -> None:
    from memviz.workloads.models.revnet import CONFIGS, RevNet

    assert set(CONFIGS) == set(workloads.catalogue.REVNET_CONFIGS)
    with torch.device("meta"):
        for config in CONFIGS.values():
            stages = RevNet(config, extra_blocks=1).stages
            assert tuple(len(stage) for stage in stages) == tuple(count + 1 for count in config.blocks)
            assert RevNet(config)(torch.empty(2, 3, config.size, config.size)).shape == (2, config.classes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: workloads.get("revnett"), "no workload 'revnett'; did you mean 'revnet'"),
        (lambda: workloads.get("lstm", lenght=3), "no parameter 'lenght'; did you mean 'length'"),
        (lambda: workloads.revnet(config="cifar"), "config is one of small"),
        (lambda: workloads.lstm(length=0), "length is a whole number at least 1, not 0"),
        (lambda: workloads.cnn(device="tpu"), "device is one of auto, cpu, cuda, not 'tpu'"),
        (lambda: building.parts(workloads.transformer(width=10)), "width 10 is not a multiple of heads 4; try width=12"),
    ],
)
def test_bad_settings_are_named_with_what_would_do(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_without_a_cuda_device_is_said() -> None:
    with pytest.raises(ValueError, match="finds no CUDA device; use 'cpu'"):
        building.device_of("cuda")

"""Every promise of the GPU check, as tests; skipped where there is no CUDA device."""

import pytest
import torch

from benchmarks import gpu

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize("workload", gpu.workloads("cuda"), ids=lambda workload: workload.name)
def test_what_holds_on_a_cpu_holds_on_a_gpu(workload):
    missed = [found.row() for found in gpu.findings((workload,)) if found.met is False]
    assert missed == []

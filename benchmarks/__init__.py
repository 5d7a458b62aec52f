"""What memviz promises, measured: ``python -m benchmarks.<name>`` prints a table and writes ``benchmarks/results/<name>.json``."""

import os

# Before torch is there: on a machine that does other work too, threads that spin while they wait take several times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

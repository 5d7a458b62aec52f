"""Running requests apart from whoever asks: a workload in a worker process, live objects on a thread.

>>> from memviz.running import ProcessBackend
>>> job = ProcessBackend("revnet").start(Request(plan=Plan()), print)  # doctest: +SKIP
"""

from memviz.running.job import Backend, Job, OnEvent
from memviz.running.process import ProcessBackend
from memviz.running.thread import ThreadBackend

__all__ = ["Backend", "Job", "OnEvent", "ProcessBackend", "ThreadBackend"]

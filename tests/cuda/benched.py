"""A device for the benchmark: torch's CUDA, as far as it is used, with kernels whose PTX the CPU runs.

As a program it is a worker of the benchmark on such a device: `python benched.py WRONG HUNG --pipe=N`. A
kernel is wrong if WRONG is "wrong", and the job named HUNG does not end.
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from device import SHARED_BYTES, CpuExactProgram, CpuProgram, OnTheCpu

from benchmarks.gpu import checks, events, jobs, limits, peers, timing, worker
from benchmarks.gpu.building import Architecture, Subject
from benchmarks.gpu.limits import Limits
from nsc.contract.targets import TARGETS
from nsc.operators import exact
from nsc.operators.exact import DTYPE_NAMES
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.relaxed import cuda
from nsc.runtime.relaxed.devices import BY_DEVICE

H100 = Architecture("sm_90", SHARED_BYTES)
LIMITS = Limits(4e12, 3e13, 9e11, 2e-6, 3e-6)
MACHINE = worker.Machine("Some GPU (1 GB)", H100, "torch 2")


class Event:
    """An event with the time of the host."""

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.seconds = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return (end.seconds - self.seconds) * 1e3


class Device:
    """The programs of the kernels, run by the CPU.

    Attributes:
        edit: changes the text of kernels.
        after: called after each launch, with the function's name and its arguments.
        captured: launches of the graph in capture; None outside a capture.
    """

    def __init__(self):
        self.programs = {}
        self.reset()

    def reset(self):
        self.edit, self.after, self.captured = str, lambda function, arguments: None, None

    def program_of(self, kernel, device):
        key = kernel.spec, self.edit
        if key not in self.programs:
            self.programs[key] = CpuProgram(kernel, edit=self.edit)
        return self.programs[key]

    def exact_program_of(self, source, dtype, device):
        key = source.name, dtype
        if key not in self.programs:
            self.programs[key] = CpuExactProgram(source, dtype)
        return self.programs[key]

    def exact_worker(self, x, spec):
        source = exact._exact_kernel(spec).source
        return exact_cuda.CudaSort(source, exact_cuda.program_of(source, DTYPE_NAMES[x.dtype], x.device))

    def launch(self, launch, program, function, blocks, arguments):
        launch(program, function, blocks, arguments)
        self.after(function, arguments)
        if self.captured is not None:
            self.captured.append(partial(launch, program, function, blocks, arguments))

    @contextlib.contextmanager
    def graph(self, graph):
        self.captured = graph.launches
        yield
        self.captured = None


class Graph:
    """A captured graph: its launches, run again."""

    def __init__(self):
        self.launches = []

    def replay(self):
        for launch in self.launches:
            launch()


def stand_in(device, monkeypatch):
    """Put a device in the place of torch's CUDA."""
    device.reset()
    properties = SimpleNamespace(
        major=9,
        minor=0,
        multi_processor_count=1,
        shared_memory_per_block_optin=SHARED_BYTES,
        total_memory=80 << 30,
    )
    for name, stand_in in {
        "is_available": lambda: True,
        "get_device_name": lambda: "Some GPU (1 GB)",
        "get_device_properties": lambda device: properties,
        "synchronize": lambda: None,
        "empty_cache": lambda: None,
        "reset_peak_memory_stats": lambda: None,
        "memory_allocated": lambda: 0,
        "max_memory_allocated": lambda: 1 << 20,
        "Event": Event,
        "Stream": lambda: None,
        "stream": lambda stream: contextlib.nullcontext(),
        "CUDAGraph": Graph,
        "graph": device.graph,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    for module in (events, checks, limits, peers):
        monkeypatch.setattr(module, "DEVICE", "cpu")
    monkeypatch.setattr(Subject, "sorter", property(lambda subject: Sorter(subject.files)))
    monkeypatch.setattr(Subject, "selector", property(lambda subject: Selector(subject.files)))
    monkeypatch.setattr(cuda, "program_of", device.program_of)
    monkeypatch.setattr(exact_cuda, "program_of", device.exact_program_of)
    launch = OnTheCpu.launch
    monkeypatch.setattr(OnTheCpu, "launch", lambda *arguments: device.launch(launch, *arguments))
    monkeypatch.setattr(exact, "_worker", device.exact_worker)
    monkeypatch.setitem(TARGETS, "cuda", replace(TARGETS["cuda"], devices=("cpu",)))
    monkeypatch.setitem(BY_DEVICE, torch.device("cpu"), cuda)
    monkeypatch.setattr(peers, "MOST_SAMPLES", 3)
    monkeypatch.setattr(peers, "MOST_SMALL_SAMPLES", 5)
    monkeypatch.setattr(events, "ROUND_SECONDS", 0)
    monkeypatch.setattr(limits, "measure", lambda: LIMITS)
    monkeypatch.setattr(timing, "LAUNCH_CALLS", 1)
    monkeypatch.setattr(peers, "DIFFSORT_WIDEST", 0)
    monkeypatch.setattr(worker, "machine", lambda: MACHINE)


def edited(text):
    """Make the gradients of kernels wrong."""
    changed = text.replace("products[c] = a - b;", "products[c] = b - a;")
    assert changed != text
    return changed


if __name__ == "__main__":
    is_wrong, hung, pipe = sys.argv[1:]
    with pytest.MonkeyPatch.context() as patch:
        stand_in(device := Device(), patch)
        device.edit = edited if is_wrong == "wrong" else str
        if hung in jobs.JOB_OF:
            endless = replace(jobs.JOB_OF[hung], run=lambda *_: time.sleep(600))
            patch.setitem(jobs.JOB_OF, hung, endless)
        worker.main(pipe)

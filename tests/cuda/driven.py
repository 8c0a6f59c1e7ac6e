"""`python driven.py FOLDER`: nsc loads and launches kernels by the real CuPy, with driver.cpp as libcuda.

Only torch's part is replaced: a build of torch without CUDA has no devices and no streams. The output is, as
JSON, the traceback of each of the CHECKS, or null.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import sys
import threading
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from emulated import Emulated

from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.contract.exact import for_element
from nsc.contract.launch import PARTS
from nsc.errors import BuildError, DeviceError, OperandError, PackageError, ToolchainError
from nsc.join.exact import exact_kernel
from nsc.runtime.devices.launches import launches
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.exact.kernel import layout_of
from nsc.runtime.relaxed import cuda, cuda_program, reference
from nsc.runtime.relaxed.kernel import register_kernel

CONTEXT = 1
DEVICE = torch.device("cuda", 0)
PROPERTIES = SimpleNamespace(
    multi_processor_count=2, major=9, minor=0, shared_memory_per_block_optin=227 << 10
)
OUT_OF_MEMORY, ILLEGAL_ADDRESS = 2, 700


class Builds:
    """Replaces the build cache: builds kernels for the emulation, each once.

    Attributes:
        count: number of calls.
    """

    def __init__(self, folder):
        self.folder, self.count, self.binaries = folder, 0, {}

    def __call__(self, kernel, architecture, part, shared_bytes):
        assert part in PARTS
        assert architecture == "sm_90"
        self.count += 1
        if kernel.spec not in self.binaries:
            defined = launches(kernel.n, kernel.launch, kernel.reals, shared_bytes).defines
            defines = "".join(f"#define {name} {value}\n" for name, value in defined)
            (folder := self.folder / kernel.spec).mkdir()
            Emulated(defines + kernel.sources["cuda"], folder)
            self.binaries[kernel.spec] = folder / "kernels.so"
        return SimpleNamespace(binary=self.binaries[kernel.spec])


class ExactBuilds:
    """Replaces the cache of exact kernels; see `Builds`."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, source, dtype, architecture, launches):
        assert architecture == "sm_90"
        defines = "".join(f"#define {name} {value}\n" for name, value in launches.defines)
        (folder := self.folder / f"{source.name}_{dtype}").mkdir()
        Emulated(defines + for_element(source.texts["cuda"], dtype), folder)
        return SimpleNamespace(binary=folder / "kernels.so")


def stand_in(folder):
    """Replace torch's functions for devices and streams, and the build cache."""
    torch.cuda.get_device_properties = lambda device: PROPERTIES
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.device = lambda device: contextlib.nullcontext()
    torch.cuda.current_device = lambda: 0
    torch.cuda.current_stream = lambda: SimpleNamespace(cuda_stream=0)
    torch.cuda.synchronize = synchronize
    cuda_program.build = Builds(folder)
    exact_cuda.build = ExactBuilds(folder)


def synchronize(device):
    """Bind the device's context to the thread, as any call of CUDA's runtime does."""
    from cupy.cuda import driver

    driver.ctxSetCurrent(CONTEXT)


def driver_variable(name):
    """Return a variable that tests share with driver.cpp."""
    return ctypes.c_int.in_dll(ctypes.CDLL("libcuda.so.1"), f"test_{name}")


@contextlib.contextmanager
def in_the_driver(name, value):
    variable = driver_variable(name)
    variable.value = value
    try:
        yield
    finally:
        variable.value = 0


@contextlib.contextmanager
def replaced(place, name, value):
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)


@functools.cache
def kernel_of(n=64, dtype="float64"):
    """Return a kernel; on 64 wires it takes more shared memory than launches have by default."""
    # All codelets run from tables, which build in a fraction of the time: it is launches that are tested.
    request = Request("bitonic", n, dtypes=(dtype,), targets=("cuda",), straight_line=0)
    return register_kernel(compile_network(request).package.files)


def run(kernel, x):
    steepness = torch.tensor(0.5, dtype=x.dtype).expand(len(x))
    return cuda.loss_unchecked(x, steepness, x.argsort(-1), "cross_entropy", kernel.spec)[:3]


def check_results():
    kernel = kernel_of()
    x = torch.randn(2, kernel.n, dtype=torch.float64, requires_grad=True)
    steepness = torch.tensor(0.5, dtype=torch.float64).expand(2)
    values, losses = reference.relax(kernel, x, steepness, target := x.argsort(-1), "cross_entropy")
    (expected,) = torch.autograd.grad(losses.sum(), x)
    x = x.detach()
    torch.testing.assert_close(
        cuda.relax_unchecked(x, steepness, None, "none", kernel.spec)[0], values.detach()
    )
    actual, x_grad, *_ = cuda.loss(x, steepness, target, "cross_entropy", kernel.spec)
    torch.testing.assert_close(actual, losses.detach())
    torch.testing.assert_close(x_grad, expected)


def check_results_in_a_thread():
    """Autograd's threads begin without a context."""
    check_results()
    problems = []

    def check():
        try:
            check_results()
        except BaseException:
            problems.append(traceback.format_exc())

    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert not problems, problems[0]


def check_a_graph_captures_what_was_called_once():
    kernel = kernel_of(4, "float32")
    x, steepness, payload = torch.randn(2, 4), torch.ones(2), torch.ones(2, 4, 40)

    def calls():
        cuda.relax_unchecked(x, steepness, payload, "transposed", kernel.spec)
        return cuda.relax_backward_unchecked(None, payload, x, steepness, payload, "transposed", kernel.spec)

    calls()
    with in_the_driver("captures", 1):
        run(kernel, x)
        assert calls()[2].shape == (2, 4, 40)


def check_exact_sorting():
    """On the program of CuPy; a graph may capture it once it is loaded."""
    source = exact_kernel(9).source
    with (
        replaced(torch.cuda, "is_current_stream_capturing", lambda: True),
        pytest.raises(ToolchainError, match=r"best_9_exact is not loaded yet.*the same call once before"),
    ):
        exact_cuda.program_of(source, "int16", DEVICE)
    program = exact_cuda.program_of(source, "int16", DEVICE)
    assert exact_cuda.program_of(source, "int16", DEVICE) is program
    worker = exact_cuda.CudaSort(source, program)
    x = torch.randint(-5, 5, (40, 9, 3), dtype=torch.int16)
    values, indices = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64)
    layout = layout_of(40, 9, 3, 1)
    with in_the_driver("captures", 1):
        worker.sort(x, layout, False, values, indices)
    expected = torch.sort(x, dim=1, stable=True)
    assert torch.equal(values, expected.values)
    assert torch.equal(indices, expected.indices)
    worker.sort(x, layout, True, values, None)
    assert torch.equal(values, torch.sort(x, dim=1, descending=True).values)


def check_loading_inside_a_capture_is_refused():
    with (
        replaced(torch.cuda, "is_current_stream_capturing", lambda: True),
        pytest.raises(ToolchainError, match="make the same call once before"),
    ):
        cuda_program.CupyProgram(kernel_of(), 0)


def check_a_part_is_loaded_by_the_call_that_needs_it():
    kernel = kernel_of(32, "float32")
    x = torch.randn(2, 32)
    modules = driver_variable("modules").value
    cuda.relax_unchecked(x, torch.ones(2), None, "permutation", kernel.spec)
    assert driver_variable("modules").value == modules + 1
    with (
        replaced(torch.cuda, "is_current_stream_capturing", lambda: True),
        pytest.raises(ToolchainError, match="bitonic_32 is not loaded yet for this call"),
    ):
        run(kernel, x)
    run(kernel, x)
    assert driver_variable("modules").value == modules + 2


def check_kernels_of_another_package():
    other = cuda_program.build(kernel_of(4, "float32"), "sm_90", "forward", 227 << 10)
    with (
        replaced(cuda_program, "build", lambda *_: other),
        pytest.raises(PackageError, match=r"manifest of bitonic_64.*are not of one package"),
    ):
        cuda_program.CupyProgram(kernel_of(), 0).resident_blocks("nsc_keys_f64")


def check_a_binary_that_the_driver_does_not_load():
    kernel = kernel_of()
    broken = cuda_program.build.folder / "broken.cubin"
    broken.write_text("no ELF file, but " + kernel.manifest.stated("cuda"))
    with (
        replaced(cuda_program, "build", lambda *_: SimpleNamespace(binary=broken)),
        pytest.raises(
            BuildError, match=r"the driver does not load .*broken.cubin \(CUDA_ERROR_INVALID_IMAGE"
        ),
    ):
        cuda_program.CupyProgram(kernel, 0).resident_blocks("nsc_keys_f64")


def check_a_launch_that_fails():
    kernel = kernel_of()
    x = torch.randn(2, kernel.n, dtype=torch.float64)
    expected = run(kernel, x)
    for status, what_to_do in (
        (ILLEGAL_ADDRESS, r"CUDA_ERROR_ILLEGAL_ADDRESS: .* CUDA_LAUNCH_BLOCKING=1 .* started anew"),
        (OUT_OF_MEMORY, r"CUDA_ERROR_OUT_OF_MEMORY: .* torch.cuda.empty_cache\(\)"),
    ):
        where = (
            r"launch nsc_keys_f64 of bitonic_64_float64 \(1 block of 128 threads and 2,144 bytes of shared"
        )
        with (
            in_the_driver("next_launch", status),
            pytest.raises(DeviceError, match=f"{where} memory\\): {what_to_do}"),
        ):
            run(kernel, x)
        assert all(map(torch.equal, run(kernel, x), expected))


def check_a_device_that_holds_no_block():
    kernel = kernel_of(8, "float32")
    x = torch.randn(2, 8)
    modules = driver_variable("modules").value
    with in_the_driver("is_full", 1), pytest.raises(DeviceError) as refused:
        run(kernel, x)
    message = str(refused.value)
    assert (
        "holds a block of nsc_keys_f32 of bitonic_8: 128 threads of 100 registers, and 576 bytes" in message
    )
    assert "smaller network, or the cpu target" in message
    assert driver_variable("modules").value == modules
    run(kernel, x)  # tries again


def check_a_kernel_without_the_target():
    request = Request("bitonic", 4, name="only_for_cpu")
    with pytest.raises(OperandError, match="compiled for cpu: compile it with targets="):
        cuda.program_of(register_kernel(compile_network(request).package.files), DEVICE)


def check_two_threads_load_once():
    kernel = kernel_of(16, "float32")
    builds, programs = cuda_program.build, []
    before, modules = builds.count, driver_variable("modules").value

    def slowly(*arguments):
        time.sleep(0.2)
        return builds(*arguments)

    def load():
        program = cuda.program_of(kernel, DEVICE)
        program.resident_blocks("nsc_keys_f32")
        programs.append(program)

    with replaced(cuda_program, "build", slowly):
        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(programs) == 4
    assert len(set(map(id, programs))) == 1
    assert builds.count == before + 1
    assert driver_variable("modules").value == modules + 1


def check_too_little_memory():
    kernel = kernel_of()
    x = torch.randn(2, kernel.n, dtype=torch.float64)
    steepness = torch.ones(2, dtype=torch.float64)
    expected = run(kernel, x)
    calls = {
        "loss": lambda: run(kernel, x),
        "relax": lambda: cuda.relax_unchecked(x, steepness, None, "permutation", kernel.spec),
        "relax_backward": lambda: cuda.relax_backward_unchecked(
            None, torch.ones(2, 64, 64, dtype=torch.float64), x, steepness, None, "permutation", kernel.spec
        ),
    }
    plain = torch.Tensor.new_empty
    for name, call in calls.items():
        sizes = []

        def counted(tensor, *arguments, sizes=sizes, **options):
            sizes.append(plain(tensor, *arguments, **options).nbytes)
            return plain(tensor, *arguments, **options)

        with replaced(torch.Tensor, "new_empty", counted):
            call()
        # Each allocation in turn fails.
        for number in range(len(sizes)):
            remaining = [number]

            def refusing(tensor, *arguments, remaining=remaining, **options):
                remaining[0] -= 1
                if remaining[0] < 0:
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
                return plain(tensor, *arguments, **options)

            with (
                replaced(torch.Tensor, "new_empty", refusing),
                pytest.raises(
                    torch.OutOfMemoryError, match=r"bitonic_64_float64: 2 samples .* smaller batch"
                ) as error,
            ):
                call()
            assert "Tried to allocate" in str(error.value), name
        assert all(map(torch.equal, run(kernel, x), expected))


CHECKS = {
    name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")
}


def main(folder):
    stand_in(folder)
    problems = {}
    for name, check in CHECKS.items():
        try:
            check()
            problems[name] = None
        except BaseException:
            problems[name] = traceback.format_exc()
    print(json.dumps(problems))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Kernels that the real CuPy loads and launches, with a libcuda of Python: tests that `test_calls.py` runs.

A process of their own has them, because it loads that library in place of the driver's. Of torch only devices
and streams are replaced, which a build of torch without CUDA does not have.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import subprocess
import threading
import time
import traceback
from types import SimpleNamespace

import pytest
import torch
from device import NEWEST, with_defines
from machine import ANYWHERE, Kernels

from nsc import library
from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.contract.exact import for_element
from nsc.errors import BuildError, DeviceError, ToolchainError
from nsc.join.on_demand import exact_kernel
from nsc.runtime.devices import cuda_module
from nsc.runtime.devices.launches import EXACT_VALUES, launches
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.exact.kernel import layout_of
from nsc.runtime.relaxed import cuda, cuda_program, reference
from nsc.runtime.relaxed.call import Call
from nsc.runtime.relaxed.kernel import register_kernel

DEVICE, CONTEXT = torch.device("cuda", 0), 1
MOST_SHARED_BYTES = 227 << 10
PROPERTIES = SimpleNamespace(
    multi_processor_count=2, major=9, minor=0, shared_memory_per_block_optin=MOST_SHARED_BYTES
)

# -------------------------------------------------------------------------------------- the driver

ERRORS = {
    1: b"CUDA_ERROR_INVALID_VALUE",
    2: b"CUDA_ERROR_OUT_OF_MEMORY",
    200: b"CUDA_ERROR_INVALID_IMAGE",
    201: b"CUDA_ERROR_INVALID_CONTEXT",
    500: b"CUDA_ERROR_NOT_FOUND",
    700: b"CUDA_ERROR_ILLEGAL_ADDRESS",
    719: b"CUDA_ERROR_LAUNCH_FAILED",
    900: b"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
}
NUM_REGS, MAX_DYNAMIC_SHARED_SIZE_BYTES = 4, 8
ADDRESS, INT, UNSIGNED, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
ADDRESSES, INTS = ctypes.POINTER(ADDRESS), ctypes.POINTER(INT)
C_TYPES = {INT: "int", UNSIGNED: "unsigned", SIZE: "size_t"}
FUNCTIONS = {
    "cuGetErrorName": (INT, ctypes.POINTER(ctypes.c_char_p)),
    "cuGetErrorString": (INT, ctypes.POINTER(ctypes.c_char_p)),
    "cuCtxGetCurrent": (ADDRESSES,),
    "cuCtxSetCurrent": (ADDRESS,),
    "cuModuleLoadData": (ADDRESSES, ADDRESS),
    "cuModuleUnload": (ADDRESS,),
    "cuModuleGetFunction": (ADDRESSES, ADDRESS, ctypes.c_char_p),
    "cuFuncSetAttribute": (ADDRESS, INT, INT),
    "cuFuncGetAttribute": (INTS, INT, ADDRESS),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (INTS, ADDRESS, INT, SIZE),
    "cuLaunchKernel": (ADDRESS, *[UNSIGNED] * 7, ADDRESS, ADDRESSES, ADDRESSES),
}
NEED_A_CONTEXT = ("cuModuleLoadData", "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuLaunchKernel")
# Of the functions that ask for a module or a function the launch alone.
ALLOWED_IN_A_CAPTURE = ("cuGet", "cuCtx", "cuModuleUnload", "cuLaunchKernel")


class Driver:
    """A libcuda: its modules are PTX. It is as strict as the driver.

    A thread needs a context, a function an attribute for more than 48 KiB of shared memory, and the capture
    of a graph allows little but launches. A function returns the number of an error, or None.

    Attributes:
        modules: those that are loaded.
        captures: whether a graph is captured.
        next_launch: the error of the next launch.
        is_full: whether the device has no room for a block.
        plain_shared_bytes: what a block may have that did not ask for more.
    """

    plain_shared_bytes = 48 << 10

    def __init__(self):
        self.modules, self.captures, self.next_launch, self.is_full = {}, False, None, False
        self._thread, self._handles = threading.local(), itertools.count(1)
        self._functions, self._allowed = {}, {}

    def call(self, name, *arguments):
        if name in NEED_A_CONTEXT and not getattr(self._thread, "context", None):
            return 201
        if self.captures and not name.startswith(ALLOWED_IN_A_CAPTURE):
            return 900
        try:
            return getattr(self, name)(*arguments) or 0
        except BaseException:  # which ctypes would only print
            traceback.print_exc()
            return 719

    def cuGetErrorName(self, status, text):
        text[0] = ERRORS[status]

    def cuGetErrorString(self, status, text):
        text[0] = b"as the stand-in says"

    def cuCtxGetCurrent(self, current):
        current[0] = getattr(self._thread, "context", None)

    def cuCtxSetCurrent(self, current):
        self._thread.context = current

    def cuModuleLoadData(self, module, image):
        text = ctypes.string_at(image)
        if b".version" not in text:
            return 200
        module[0] = handle = next(self._handles)
        self.modules[handle] = Kernels(text.decode())
        return None

    def cuModuleUnload(self, module):
        del self.modules[module]

    def cuModuleGetFunction(self, function, module, name):
        if name.decode() not in self.modules[module]:
            return 500
        function[0] = handle = next(self._handles)
        self._functions[handle] = self.modules[module], name.decode()
        return None

    def cuFuncSetAttribute(self, function, attribute, value):
        if attribute != MAX_DYNAMIC_SHARED_SIZE_BYTES or value > MOST_SHARED_BYTES:
            return 1
        self._allowed[function] = value
        return None

    def cuFuncGetAttribute(self, value, attribute, function):
        if attribute != NUM_REGS or function not in self._functions:
            return 1
        value[0] = 100
        return None

    def _allows(self, function, shared_bytes):
        return shared_bytes <= self._allowed.get(function, self.plain_shared_bytes)

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, blocks, function, threads, shared_bytes):
        blocks[0] = not self.is_full and self._allows(function, shared_bytes)

    def cuLaunchKernel(self, function, x, y, z, width, height, depth, shared_bytes, stream, arguments, extra):
        error, self.next_launch = self.next_launch, None
        if error or not self._allows(function, shared_bytes) or {y, z, height, depth} != {1}:
            return error or 1
        kernels, name = self._functions[function]
        sizes = kernels.encoded(name).parameter_bytes
        words = [ctypes.string_at(arguments[k], size) for k, size in enumerate(sizes)]
        words = [int.from_bytes(word, "little") for word in words]
        kernels.launch(name, x, width, words, -(-shared_bytes // 16) * 16, memory=ANYWHERE)
        return None


def load(driver, folder):
    """Load a libcuda.so.1 that passes each call to the driver; return what must outlive it."""
    text, path = "#include <stddef.h>\n", folder / "libcuda.so.1"
    for name, types in FUNCTIONS.items():
        given = [C_TYPES.get(each, "void *") for each in types]
        declared = ", ".join(f"{each} a{k}" for k, each in enumerate(given))
        passed = ", ".join(f"a{k}" for k in range(len(given)))
        text += f"int (*of_{name})({declared});\nint {name}({declared}) {{ return of_{name}({passed}); }}\n"
    command = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-xc", "-", "-o", path]
    subprocess.run(command, input=text, text=True, check=True)
    loaded = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    callbacks = []
    for name, types in FUNCTIONS.items():
        callbacks.append(ctypes.CFUNCTYPE(INT, *types)(functools.partial(driver.call, name)))
        ADDRESS.in_dll(loaded, f"of_{name}").value = ctypes.cast(callbacks[-1], ADDRESS).value
    return callbacks


@pytest.fixture(scope="module", autouse=True)
def driver(tmp_path_factory):
    """The driver, torch's part, and PTX in the place of binaries."""
    driver, folder = Driver(), tmp_path_factory.mktemp("binaries")
    callbacks = load(driver, folder)

    def written(name, ptx):
        (path := folder / f"{name}.ptx").write_text(ptx, encoding="utf-8")
        return SimpleNamespace(binary=path)

    def build(kernel, architecture, part, shared_bytes):
        assert (architecture, shared_bytes) == ("sm_90", MOST_SHARED_BYTES)
        launched = launches(kernel.n, kernel.launch, kernel.reals, shared_bytes)
        text = with_defines(f"#define NSC_{part.upper()}\n{kernel.sources['cuda']}", launched)
        ptx = NEWEST.ptx(library.expanded(text))
        return written(f"{kernel.spec}_{part}", ptx)

    def build_exact(source, dtype, architecture, launched):
        assert architecture == "sm_90"
        ptx = NEWEST.ptx(library.expanded(with_defines(for_element(source.texts["cuda"], dtype), launched)))
        return written(f"{source.name}_{dtype}", ptx)

    def synchronize(device):
        """Bind the device's context to the thread, as any call of CUDA's runtime does."""
        from cupy.cuda import driver

        driver.ctxSetCurrent(CONTEXT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "get_device_properties", lambda device: PROPERTIES)
        patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        patch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
        patch.setattr(torch.cuda, "current_device", lambda: 0)
        patch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
        patch.setattr(torch.cuda, "synchronize", synchronize)
        patch.setattr(cuda_program, "build", build)
        patch.setattr(exact_cuda, "build", build_exact)
        yield driver
    assert callbacks


def kernel_of():
    request = Request("bitonic", 8, targets=("cuda",), straight_line=0)
    return register_kernel(compile_network(request).package.files)


def run(kernel, x):
    steepness = torch.tensor(0.5, dtype=x.dtype).expand(len(x))
    return cuda.loss(Call.of(x, steepness, x.argsort(-1), "cross_entropy", kernel.spec))[:3]


# ----------------------------------------------------------------------------------------- the tests


def test_results_in_any_thread():
    """Autograd's threads begin without a context."""
    kernel, found = kernel_of(), []
    x, steepness = torch.randn(2, kernel.n, requires_grad=True), torch.tensor(0.5).expand(2)
    values, losses = reference.relax(kernel, x, steepness, x.argsort(-1), "cross_entropy")
    (grad,) = torch.autograd.grad(losses.sum(), x)
    x = x.detach()

    def call():
        found.append(cuda.relax(Call.of(x, steepness, None, "none", kernel.spec))[:1] + run(kernel, x)[:2])

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    call()
    torch.testing.assert_close(found, [(values.detach(), losses.detach(), grad)] * 2)


def test_a_graph_captures_what_was_called_once(driver, monkeypatch):
    """A call loads the part of a kernel that it needs."""
    cuda_program._programs._values.clear()
    kernel, x, modules = kernel_of(), torch.randn(2, 8), len(driver.modules)
    cuda.relax(Call.of(x, torch.ones(2), None, "permutation", kernel.spec))
    assert len(driver.modules) == modules + 1
    with monkeypatch.context() as capture:
        capture.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        with pytest.raises(ToolchainError, match="bitonic_8 is not loaded yet for this call"):
            run(kernel, x)
    expected = run(kernel, x)
    assert len(driver.modules) == modules + 2
    monkeypatch.setattr(driver, "captures", True)
    assert all(map(torch.equal, run(kernel, x), expected))


def test_exact_sorting(driver, monkeypatch):
    """A graph may capture it once it is loaded; it takes more shared memory than a launch has unasked."""
    source = exact_kernel(9).source
    monkeypatch.setattr(cuda_module, "_PLAIN_SHARED_BYTES", plain := 4 << 10)
    monkeypatch.setattr(driver, "plain_shared_bytes", plain)
    with monkeypatch.context() as capture:
        capture.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        with pytest.raises(
            ToolchainError, match=r"best_9_exact is not loaded yet.*the same call once before"
        ):
            exact_cuda.program_of(source, "float64", DEVICE)
    program = exact_cuda.program_of(source, "float64", DEVICE)
    assert exact_cuda.program_of(source, "float64", DEVICE) is program
    assert program.launches.blocks[EXACT_VALUES].shared_bytes > plain
    worker = exact_cuda.CudaSort(source, program)
    x = torch.randint(-5, 5, (40, 9, 3)).double()
    values, indices = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64)
    monkeypatch.setattr(driver, "captures", True)
    for descending, places in ((False, indices), (True, None)):
        worker.sort(x, layout_of(40, 9, 3, 1), descending, values, places)
        expected = torch.sort(x, dim=1, descending=descending, stable=True)
        assert torch.equal(values, expected.values)
        assert places is None or torch.equal(places, expected.indices)


def test_a_binary_that_the_driver_does_not_load(monkeypatch, tmp_path):
    (broken := tmp_path / "broken.cubin").write_text("no binary")
    monkeypatch.setattr(cuda_program, "build", lambda *_: SimpleNamespace(binary=broken))
    with pytest.raises(
        BuildError, match=r"the driver does not load .*broken.cubin \(CUDA_ERROR_INVALID_IMAGE"
    ):
        cuda_program.Program(kernel_of(), 0).resident_blocks("nsc_keys_f32")


def test_a_launch_that_fails(driver):
    kernel, x = kernel_of(), torch.randn(2, 8)
    expected = run(kernel, x)
    where = r"launch nsc_keys_f32 of bitonic_8 \(1 block of 128 threads and 576 bytes of shared memory\)"
    for error, what_to_do in (
        (700, r"CUDA_ERROR_ILLEGAL_ADDRESS: .* CUDA_LAUNCH_BLOCKING=1 .* started anew"),
        (2, r"CUDA_ERROR_OUT_OF_MEMORY: .* torch.cuda.empty_cache\(\)"),
    ):
        driver.next_launch = error
        with pytest.raises(DeviceError, match=f"{where}: {what_to_do}"):
            run(kernel, x)
    assert all(map(torch.equal, run(kernel, x), expected))


def test_a_device_that_holds_no_block(driver):
    kernel, modules = kernel_of(), len(driver.modules)
    program = cuda_program.Program(kernel, 0)
    driver.is_full = True
    with pytest.raises(DeviceError, match="smaller network, or the cpu target") as refused:
        program.resident_blocks("nsc_keys_f32")
    driver.is_full = False
    words = "holds a block of nsc_keys_f32 of bitonic_8: 128 threads of 100 registers, and 576 bytes"
    assert words in str(refused.value)
    assert len(driver.modules) == modules
    assert program.resident_blocks("nsc_keys_f32") == 2  # tries again


def test_threads_load_once(driver, monkeypatch):
    cuda_program._programs._values.clear()
    kernel, plain, built, programs = kernel_of(), cuda_program.build, [], []
    modules = len(driver.modules)

    def slowly(*arguments):
        built.append(arguments)
        time.sleep(0.2)
        return plain(*arguments)

    def load_one():
        program = cuda.program_of(kernel, DEVICE)
        program.resident_blocks("nsc_keys_f32")
        programs.append(program)

    monkeypatch.setattr(cuda_program, "build", slowly)
    threads = [threading.Thread(target=load_one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(programs) == 4
    assert len(set(map(id, programs))) == len(built) == 1
    assert len(driver.modules) == modules + 1

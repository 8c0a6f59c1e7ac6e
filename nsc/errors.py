"""Errors that nsc raises on purpose; a message says what was asked, what was found, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class NscError(Exception):
    """Base of every error that nsc raises on purpose."""


class NetworkError(NscError, ValueError):
    """A comparator graph, a family's argument or a file that does not describe a network."""


class PropertyError(NscError, ValueError):
    """A property that n wires cannot have, an invalid limit of proofs, or a file without a proof."""


class VerificationError(NscError):
    """A network that does not sort.

    Attributes:
        counterexample: a 0-1 input, one value per wire, that comes out unsorted.
        failing_input: an integer input, a permutation of 0 … n-1, that comes out unsorted.
    """

    def __init__(self, message: str, counterexample: Sequence[int], failing_input: Sequence[int]) -> None:
        super().__init__(message)
        self.counterexample = tuple(counterexample)
        self.failing_input = tuple(failing_input)

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is pickled with its message alone, and this one could not be read again.
        return type(self), (str(self), self.counterexample, self.failing_input)


class UnprovedError(NscError):
    """A network that no exact method settled within the budget."""


class LoweringError(NscError, ValueError):
    """A request that cannot be turned into source, or a schedule that does not run its network."""


class WindowError(NscError, ValueError):
    """A window with an impossible size or rank, or a filter that cannot be made from it."""


class PackageError(NscError, ValueError):
    """A generated folder that is missing, incomplete or changed since it was written."""


class ToolchainError(NscError, RuntimeError):
    """No usable C++ compiler; the message lists what was tried."""


class BuildError(NscError, RuntimeError):
    """A compiler that failed, or a built kernel that cannot be loaded.

    Attributes:
        command: the complete command.
        log: what the compiler printed.
    """

    def __init__(self, message: str, command: Sequence[str] = (), log: str = "") -> None:
        super().__init__(message)
        self.command = tuple(command)
        self.log = log


class DeviceError(NscError, RuntimeError):
    """A device that cannot hold a kernel, or whose driver refuses a launch."""


class WorkerError(NscError, RuntimeError):
    """A process of a search that dies again and again, or a scheduler that does not answer."""


class OperandError(NscError, ValueError):
    """An operator's argument of the wrong shape, range, device or content."""


class OperandTypeError(NscError, TypeError):
    """An operator's argument of a dtype that the operator does not take."""


# The command that installs PyTorch beside an installed nsc, for GPUs or, much smaller, for CPUs alone.
INSTALL_TORCH = (
    "pip install 'sortnets[torch]'; without a GPU add --extra-index-url https://download.pytorch.org/whl/cpu"
)


@contextmanager
def torch_needed(name: str) -> Iterator[None]:
    """Wrap imports that need torch; without torch the error is one line with the command that installs it.

    Raises:
        ModuleNotFoundError: torch is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"{name} needs PyTorch, which is not installed: {INSTALL_TORCH}", name="torch"
        ) from None

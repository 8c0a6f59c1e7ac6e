"""Locks that a forked process finds open."""

from __future__ import annotations

import os
import threading
import weakref


class Lock:
    """A lock of threads, in a `with` statement.

    A fork copies a lock as it is. The thread that holds it is not copied, so nobody would ever release it:
    the new process makes it anew.
    """

    def __init__(self) -> None:
        self._renew()
        _all.add(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_all: weakref.WeakSet[Lock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in _all:
        lock._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)

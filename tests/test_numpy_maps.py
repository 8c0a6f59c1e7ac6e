"""Catches a median that takes files into memory, where blocks of them would do."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow("files of a hundred megabytes")

resource = pytest.importorskip("resource")

COLUMNS = 2_500_000  # of eleven files, 110 MB in all
LIMIT = 60_000_000

# Pages of files do not count as data of a process, arrays in memory do.
BEGIN = f"""
import resource
import numpy as np
import nsc.numpy as exact

random, columns = np.random.default_rng(0), {COLUMNS}
whole = np.memmap("whole", np.float32, "w+", shape=(11, columns))
for row in whole:
    for start in range(0, columns, 1 << 20):
        part = row[start : start + (1 << 20)]
        random.random(out=part, dtype=np.float32)
exact.median(whole[:, :1000], axis=0, workers=1)  # the kernel is built
result = np.memmap("result", np.float32, "w+", shape=(columns,))
exact.set_num_threads(2)


def limit():
    used = next(line for line in open("/proc/self/status") if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (1024 * int(used.split()[1]) + {LIMIT},) * 2)
    try:
        np.array(whole)
    except MemoryError:
        return
    raise AssertionError("the limit does not hold")
"""
END = """
for start in (0, columns // 2, columns - 1000):
    part = slice(start, start + 1000)
    assert np.array_equal(result[part], np.median(whole[:, part], axis=0)), start
"""
WAYS = {
    "one file": """
limit()
assert exact.median(whole, axis=0, out=result) is result
""",
    "files, by Dask": """
import dask.array as da
files = [np.memmap("whole", np.float32, "r", 4 * columns * row, (columns,)) for row in range(11)]
stack = da.stack([da.from_array(file, chunks=1 << 17, name=False) for file in files]).rechunk({0: -1})
limit()
exact.median(stack, axis=0).store(result, num_workers=2)
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the data of a process")
@pytest.mark.parametrize("way", WAYS)
def test_a_median_of_files_in_bounded_memory(way, tmp_path):
    if "Dask" in way:
        pytest.importorskip("dask.array")
    code = BEGIN + WAYS[way] + END
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

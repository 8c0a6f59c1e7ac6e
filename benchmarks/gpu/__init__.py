"""The CUDA kernels on this machine's GPU, checked and timed: `PYTHONPATH=. python -m benchmarks.gpu`.

It needs torch, CuPy, NVRTC, jinja2, networkx, click and numpy. It needs no network, and nsc need not be
installed. A process runs the jobs on the GPU, and others compile kernels meanwhile. This one watches the
clock, which stops at `--minutes`, 8 if it is not stated.

The jobs stand in the order of what is learned from them (jobs.PARTS): first results of three networks against
the reference on the CPU, then times of a training step beside the peers, a profiler's counters, all other
checks and times, and forms of kernels that wait for a decision. Each has the time that it is expected to take
(jobs.Job.seconds). One for which there is no time left is left out. One that takes several times as long is
ended with its process, and the next job gets a new one.

Each job ends with a line, and its results are in gpu-DEVICE.json and gpu-DEVICE.md at once, in
benchmarks/results or in the folder of `--out`. A failure names the kernels that were launched and the first
wrong number; memcheck and racecheck of compute-sanitizer then watch that job. The run goes on, and its exit
code is 1.

- `--continue FILE` keeps what is in a JSON file, failures too, and runs the other jobs.
- `--only TEXT` runs the jobs whose name contains TEXT, and may be repeated. Without `--out` it writes none.
- `--variant NAME` times this form alone of those that wait for a decision; `building.VARIANTS` has them.
- `--build sm_90` builds the kernels on a machine without a GPU, into a folder that git ignores and that is
  carried to the GPU's: benchmarks/gpu/carried, at most 40 MB. Wheels in it can be imported there. A machine
  whose driver does not load a binary builds its own.
- `--report FOLDER` writes the tables of docs/gpu.md from the results in a folder.

worker has the process on the GPU, running the clock, checks, timing and tools what jobs do, peers the
implementations, limits the best rates of the device, predictions what was expected of one, carried the
folder, results the files, report their Markdown.
"""

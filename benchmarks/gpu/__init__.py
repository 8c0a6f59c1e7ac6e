"""The CUDA kernels on this machine's GPU, checked and timed: `PYTHONPATH=. python -m benchmarks.gpu`.

It needs torch, CuPy, NVRTC, jinja2, networkx, click and numpy, no installation and no network. Kernels are
compiled by other processes in the background, while small cases are checked and timed.

A whole run begins new files, gpu-DEVICE.json and gpu-DEVICE.md, in benchmarks/results or in the folder of
`--out`, and writes them anew after each case. What fails is printed and recorded, the run goes on, and the
exit code is 1 at the end.

- `--only TEXT` runs the cases whose name contains TEXT, and may be given more than once. It writes nothing,
  unless `--out` is given too: then its cases replace those of the same names in that folder's files.
- `--tensor-cores` also checks P on tensor cores, an experiment, and times it beside the kernels: three cases
  for each width.
- `--resume` keeps what the files hold, failures among it, and runs the rest: for a run that was interrupted.
  A run whose GPU no longer answers, which is how an access to a wrong address ends, does so by itself.

compute-sanitizer finds wrong addresses and races where results may be right. It takes seconds for the small
checks. Without torch's cache of freed memory it sees the ends of tensors, not those of the cache's blocks:

    export PYTHONPATH=. PYTORCH_NO_CUDA_MEMORY_CACHING=1
    for tool in memcheck racecheck synccheck; do
        compute-sanitizer --tool $tool --target-processes application-only --error-exitcode 9 \\
            python -m benchmarks.gpu --only "check, bitonic 4" --only "check, merge_exchange 33" \\
            --only "check, bitonic 128"
    done

jobs has the table of what is checked and timed, checks and timing do it, peers says who takes part, limits
what the device does at best, building compiles, results are what the files hold, report is their Markdown.
"""

"""The CUDA kernels on this machine's GPU, checked and timed: `PYTHONPATH=. python -m benchmarks.gpu`.

It needs torch, CuPy, NVRTC, jinja2, networkx, click and numpy. It needs no network, and nsc need not be
installed. Other processes compile kernels in the background, while this one checks and times small cases.

A whole run begins new files, gpu-DEVICE.json and gpu-DEVICE.md, in benchmarks/results or in the folder of
`--out`, and writes them anew after each case. Failures are printed and recorded. The run goes on, and its
exit code is 1.

- `--only TEXT` runs the cases whose name contains TEXT, and may be repeated. Without `--out` it writes
  nothing. With `--out`, its cases replace cases of the same names in the files of that folder.
- `--resume` continues an interrupted run: it keeps the results in the files, failures too, and runs the other
  cases. After an access to a wrong address the GPU no longer answers; then the run resumes by itself.

- `--variant NAME` times a form of the relaxed kernels that is not shipped beside the one that is, so that a
  run decides between them; `building.VARIANTS` has them.
- `--build ARCHITECTURE` builds all kernels into $NSC_CACHE_DIR, on a machine that needs no GPU. They serve
  another machine whose NVRTC has the same version. CuPy calls the one in LD_PRELOAD, which must name both of
  its libraries, libnvrtc-builtins.so first.
- `--plan` prints the commands of a run in parts of eight minutes, for a GPU that is lent.

compute-sanitizer finds wrong addresses and races even where results are right. The small checks take it
seconds. The variable turns off torch's cache of freed memory, so that accesses beyond a tensor's end show:

    export PYTHONPATH=. PYTORCH_NO_CUDA_MEMORY_CACHING=1
    for tool in memcheck racecheck synccheck; do
        compute-sanitizer --tool $tool --target-processes application-only --error-exitcode 9 \\
            python -m benchmarks.gpu --only "check, bitonic 4" --only "check, merge_exchange 33" \\
            --only "check, bitonic 128"
    done

jobs has the table of checks and timings, checks and timing run them, peers has the implementations, limits
measures the best rates of the device, predictions has what was expected of one, building compiles, results
reads and writes the files, report renders their Markdown.
"""

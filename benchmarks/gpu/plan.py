"""The plan of a run on a GPU that is lent for a short time."""

# Parts of at most eight minutes; what one leaves undone, the next does.
PLAN = """\
export PYTHONPATH=. NSC_CACHE_DIR=cubins

1. On any machine, with the NVRTC of the GPU's machine: build, and carry cubins there, with mode 700.
python -m benchmarks.gpu --build sm_90

2. Checks, then addresses and races.
timeout 240 python -m benchmarks.gpu --out results --only check --only "same bits"
for tool in memcheck racecheck; do
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 timeout 110 compute-sanitizer --tool $tool \\
        --target-processes application-only --error-exitcode 9 \\
        python -m benchmarks.gpu --only "check, bitonic 4" --only "check, merge_exchange 33"
done

3. Times.
timeout 470 python -m benchmarks.gpu --out results --resume

4. What is left of the times, and what four kernels wait for.
timeout 240 python -m benchmarks.gpu --out results --resume
for case in "16 route" "128 route" "1024 route_backward" "16 keys"; do
    set -- $case
    timeout 55 ncu --clock-control none --set full -k "regex:nsc_$2_f32" --launch-skip 4 -c 1 \\
        -o results/$2_$1 python -m benchmarks.gpu --only "P + gradient, bitonic $1"
done

5. Variants, each beside what is shipped.
timeout 470 python -m benchmarks.gpu --out results/variants --variant all \\
    --only "gradient, bitonic 16" --only "gradient, bitonic 128" --only "gradient, bitonic 256" \\
    --only "gradient, bitonic 512" --only "gradient, bitonic 1024"
"""

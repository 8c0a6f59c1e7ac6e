/* Sorts softly by a package's library, with a pool and without, and prints what it finds. */
#include HEADER
#include <stdio.h>
#include <stdlib.h>

/* More than a register has lanes, so that there is work for a pool. */
#define BATCH 40

static int pool_calls;

/* A pool of one thread that cuts every range in two. */
static void halves(int64_t begin, int64_t end, int64_t grain, nsc_body body, void *context) {
    const int64_t middle = begin + (end - begin) / 2;
    (void)grain;
    ++pool_calls;
    if (begin < middle) body(begin, middle, context);
    body(middle, end, context);
}

static void show(const char *name, const float *numbers, int count) {
    int k;
    printf("%s", name);
    for (k = 0; k < count; ++k) printf(" %.9g", (double)numbers[k]);
    printf("\n");
}

int main(void) {
    static float x[BATCH * N], values[BATCH * N], P[BATCH * N * N], x_grad[BATCH * N];
    static float losses[BATCH], steepness_grad[BATCH], again[BATCH * N];
    static int64_t target[BATCH * N];
    float steepness = 3.0f, bad = -1.0f;
    const nsc_parallel_for pools[2] = {NULL, halves};
    int k, p;
    for (k = 0; k < BATCH * N; ++k) x[k] = (float)(k * 37 % 23) / 8.0f, target[k] = k % N;
    if (nsc_prepare() != nsc_ok) return 1;
    for (p = 0; p < 2; ++p) {
        if (nsc_forward_f32(nsc_permutation, BATCH, x, &steepness, 0, NULL, 0, 0, values, P, pools[p]) != nsc_ok)
            return 2;
        if (nsc_backward_f32(nsc_cross_entropy, BATCH, x, &steepness, 0, target, N, N, NULL, NULL, x_grad,
                             steepness_grad, NULL, losses, pools[p]) != nsc_ok)
            return 3;
        show("values", values, BATCH * N);
        show("P", P, BATCH * N * N);
        show("losses", losses, BATCH);
        show("x_grad", x_grad, BATCH * N);
    }
    if (pool_calls == 0) return 4;
    if (nsc_forward_f32(nsc_none, 1, x, &bad, 0, NULL, 0, 0, again, NULL, NULL) != nsc_bad_steepness) return 5;
    target[0] = 1;
    if (nsc_backward_f32(nsc_cross_entropy, 1, x, &steepness, 0, target, N, N, NULL, NULL, x_grad, NULL, NULL, losses,
                         NULL) != nsc_bad_target)
        return 6;
    return nsc_facts()[0] == '{' ? 0 : 7;
}

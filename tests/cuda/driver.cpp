// A libcuda.so.1 with what nsc calls of it, whose modules are kernels built for emulation.h. It is as
// strict as the driver: a thread needs a context, and more than 48 KiB of shared memory must be asked for.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include <dlfcn.h>

#define API extern "C" __attribute__((visibility("default")))

using Kernel = const char *(*)(const unsigned *, const unsigned *, size_t, void **, int, uint64_t);

enum Status { success = 0, invalid_value = 1, invalid_image = 200, invalid_context = 201, not_found = 500, failed = 719 };
constexpr int max_dynamic_shared_size_bytes = 8;
constexpr unsigned plain_shared_bytes = 48 << 10, most_shared_bytes = 227 << 10;

static thread_local void *context = nullptr;
static std::map<void *, unsigned> allowed;

API int cuGetErrorName(int status, const char **text) {
    static thread_local std::string kept;
    kept = "status " + std::to_string(status);
    *text = kept.c_str();
    return success;
}

API int cuGetErrorString(int status, const char **text) { return cuGetErrorName(status, text); }

API int cuCtxGetCurrent(void **found) {
    *found = context;
    return success;
}

API int cuCtxSetCurrent(void *wanted) {
    context = wanted;
    return success;
}

API int cuModuleLoad(void **module, const char *path) {
    if (!context) return invalid_context;
    *module = dlopen(path, RTLD_NOW);
    return *module ? success : invalid_image;
}

API int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = dlsym(module, (std::string("emulated_") + name).c_str());
    return *function ? success : not_found;
}

API int cuFuncSetAttribute(void *function, int attribute, int value) {
    if (attribute != max_dynamic_shared_size_bytes || unsigned(value) > most_shared_bytes) return invalid_value;
    allowed[function] = value;
    return success;
}

API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int, size_t shared_bytes) {
    if (!context) return invalid_context;
    *blocks = shared_bytes > most_shared_bytes ? 0 : 1;
    return success;
}

API int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned width, unsigned height, unsigned depth,
                       unsigned shared_bytes, void *, void **arguments, void **) {
    if (!context) return invalid_context;
    const auto known = allowed.find(function);
    if (shared_bytes > (known == allowed.end() ? plain_shared_bytes : known->second)) return invalid_value;
    const unsigned grid[] = {x, y, z}, block[] = {width, height, depth};
    const char *problem = Kernel(function)(grid, block, (shared_bytes + 15) / 16 * 16, arguments, 0, 0);
    if (problem) std::fprintf(stderr, "%s\n", problem);
    return problem ? failed : success;
}

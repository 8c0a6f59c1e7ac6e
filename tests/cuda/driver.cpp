// A libcuda.so.1 with the functions that nsc calls. Its modules are kernels built for emulation.h. It is as
// strict as the driver: a thread needs a context, a function needs an attribute for more than 48 KiB of shared
// memory, and only launches are allowed during the capture of a graph. Tests make it capture, fail and be full.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#define API extern "C" __attribute__((visibility("default")))

using Kernel = const char *(*)(const unsigned *, const unsigned *, size_t, void **, int, uint64_t);

enum Status {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    invalid_image = 200,
    invalid_context = 201,
    not_found = 500,
    illegal_address = 700,
    launch_failed = 719,
    capture_unsupported = 900
};
constexpr int num_regs = 4, max_dynamic_shared_size_bytes = 8, registers = 100;
constexpr unsigned plain_shared_bytes = 48 << 10, most_shared_bytes = 227 << 10;

static thread_local void *context = nullptr;
static std::map<void *, unsigned> allowed;

// Variables that tests set and read.
extern "C" {
__attribute__((visibility("default"))) int test_captures = 0;     // whether a graph is captured
__attribute__((visibility("default"))) int test_next_launch = 0;  // the status of the next launch
__attribute__((visibility("default"))) int test_is_full = 0;      // whether no block is resident
__attribute__((visibility("default"))) int test_modules = 0;      // how many modules are loaded
}

API int cuGetErrorName(int status, const char **text) {
    static const std::map<int, const char *> names = {
        {success, "CUDA_SUCCESS"},
        {invalid_value, "CUDA_ERROR_INVALID_VALUE"},
        {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
        {invalid_image, "CUDA_ERROR_INVALID_IMAGE"},
        {invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
        {not_found, "CUDA_ERROR_NOT_FOUND"},
        {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {launch_failed, "CUDA_ERROR_LAUNCH_FAILED"},
        {capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    };
    *text = names.at(status);
    return success;
}

API int cuGetErrorString(int, const char **text) {
    *text = "as the stand-in says";
    return success;
}

API int cuCtxGetCurrent(void **current) {
    *current = context;
    return success;
}

API int cuCtxSetCurrent(void *current) {
    context = current;
    return success;
}

// Loads an ELF file from memory. Its header tells its length, because the table of sections comes last.
API int cuModuleLoadData(void **module, const void *image) {
    if (!context) return invalid_context;
    if (test_captures) return capture_unsupported;
    if (std::memcmp(image, ELFMAG, SELFMAG)) return invalid_image;
    const Elf64_Ehdr *header = static_cast<const Elf64_Ehdr *>(image);
    const size_t length = header->e_shoff + size_t(header->e_shentsize) * header->e_shnum;
    const int file = memfd_create("module", 0);  // stays open: dlopen would take the next file at its path for the same library
    const bool written = write(file, image, length) == ssize_t(length);
    *module = written ? dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW) : nullptr;
    if (!*module) return invalid_image;
    ++test_modules;
    return success;
}

API int cuModuleUnload(void *) {
    --test_modules;
    return success;
}

API int cuModuleGetFunction(void **function, void *module, const char *name) {
    if (test_captures) return capture_unsupported;
    *function = dlsym(module, (std::string("emulated_") + name).c_str());
    return *function ? success : not_found;
}

API int cuFuncSetAttribute(void *function, int attribute, int value) {
    if (test_captures) return capture_unsupported;
    if (attribute != max_dynamic_shared_size_bytes || unsigned(value) > most_shared_bytes) return invalid_value;
    allowed[function] = value;
    return success;
}

API int cuFuncGetAttribute(int *value, int attribute, void *) {
    if (test_captures) return capture_unsupported;
    if (attribute != num_regs) return invalid_value;
    *value = registers;
    return success;
}

API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int, size_t shared_bytes) {
    if (!context) return invalid_context;
    if (test_captures) return capture_unsupported;
    const auto known = allowed.find(function);
    *blocks = !test_is_full && shared_bytes <= (known == allowed.end() ? plain_shared_bytes : known->second);
    return success;
}

API int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned width, unsigned height, unsigned depth,
                       unsigned shared_bytes, void *, void **arguments, void **) {
    if (!context) return invalid_context;
    if (const int status = test_next_launch) {
        test_next_launch = success;
        return status;
    }
    const auto known = allowed.find(function);
    if (shared_bytes > (known == allowed.end() ? plain_shared_bytes : known->second)) return invalid_value;
    const unsigned grid[] = {x, y, z}, block[] = {width, height, depth};
    const char *problem = Kernel(function)(grid, block, (shared_bytes + 15) / 16 * 16, arguments, 0, 0);
    if (problem) std::fprintf(stderr, "%s\n", problem);
    return problem ? launch_failed : success;
}

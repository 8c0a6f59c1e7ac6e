// A program of torch that has no Python: program MODEL INPUTS ROWS COLUMNS RESULTS LIBRARY...
//
// It loads libraries of deployed sources, runs a model of AOTInductor on float32 values of a file,
// and writes the bytes of all results to another file.

#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <fstream>
#include <iostream>

int main(int, char **arguments) {
    for (char **library = arguments + 6; *library; ++library)
        if (!dlopen(*library, RTLD_NOW | RTLD_LOCAL)) {
            std::cerr << dlerror() << "\n";
            return 1;
        }
    try {
        torch::inductor::AOTIModelPackageLoader model(arguments[1]);
        const at::Tensor x = at::empty({atoll(arguments[3]), atoll(arguments[4])}, at::kFloat);
        std::ifstream(arguments[2], std::ios::binary)
            .read(static_cast<char *>(x.data_ptr()), int64_t(x.nbytes()));
        std::ofstream results(arguments[5], std::ios::binary);
        for (const at::Tensor &result : model.run({x})) {
            const at::Tensor dense = result.contiguous();
            results.write(static_cast<const char *>(dense.data_ptr()), int64_t(dense.nbytes()));
        }
    } catch (const std::exception &error) {
        std::cerr << "refused: " << error.what() << "\n";
        return 2;
    }
}

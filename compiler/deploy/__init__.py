"""Deploy: kernels of packages as one C++ source for programs of torch that have no Python."""

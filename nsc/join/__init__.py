"""Join: what needs both the compiler and the runtime."""

"""Join: code that needs both the compiler and the runtime."""

"""Study: what serves people who study networks: search, certificates, and the explorer.

It uses the compiler and the runtime. The command line and the names of `nsc` use it, and nothing else does.
"""

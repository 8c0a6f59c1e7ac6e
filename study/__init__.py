"""Study: search, certificates and the explorer, for people who study networks.

It uses the compiler and the runtime. The command line and the names of `nsc` use it, and nothing else does.
"""

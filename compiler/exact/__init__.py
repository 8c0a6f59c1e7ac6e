"""Exact: from a task to the texts of a kernel that sorts, or selects, numbers of any type.

A kernel has straight-line code, cut into functions of some 50 comparators, because a compiler's time grows
faster than a function. A network of more than 3,100 minima and maxima has code for the codelets that repeat
most, such as the blocks of a tournament; the others run from a table, which takes twice as long.
`nsc/contract` has these limits. A source holds all types and a library one of them, so a build takes one to
three seconds. Beyond 1,024 values a proof takes seconds, and `torch.sort` sorts.
"""

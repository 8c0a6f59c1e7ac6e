"""Dispatch: the ways from a call to a kernel.

One static family of operators of torch, `nsc::relax`, `nsc::relax_backward`, `nsc::loss`,
`nsc::exact_sort`, `nsc::exact_values` and `nsc::filter`, names its kernel by a string, so that compiled,
traced, exported, pickled and forked programs find it. `registering` registers them all, for the
dispatcher's Autograd key: torch's `register_autograd` is refused inside torch.func and silently zero in
forward mode. Plain eager tensors skip the operator: an autograd.Function around the C call takes a fraction
of its time, which is most of a small sort. Second derivatives and forward mode of relaxed operators go to the
plain reference. Exact operators move values, so their derivatives are the derivatives of a gather.
"""

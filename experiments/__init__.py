"""The paper's tables, each by one command: `python -m experiments list`.

A table is a list of runs. A run is a frozen record; training it gives a result; the table shows the results
beside the paper's numbers.

    data        data sets, each in training, validation and test parts
    samples     four-digit numbers and house numbers, drawn in samples of n
    models      the networks that score images
    methods     losses of scores: sorting networks, and what they are compared with
    metrics     EM, EW, EM5
    run         the records Run and Result
    ranking     the task of the paper's tables; topk is the task of its classification table
    training    one run, from its seed to its result, with checkpoints
    store       results on disk, by the hash of their run
    scheduling  many runs, in processes of this machine or on a Dask cluster
    profiles    how long and on what: quick, standard, paper
    tables      which runs a table needs
    writing     tables as Markdown, CSV and pictures
"""

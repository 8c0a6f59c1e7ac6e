"""The paper's tables, each by one command: `python -m experiments list`.

A table is a list of runs. A run is a frozen record; training it gives a result; the table shows the results
beside the paper's numbers.

    data        data sets, each in training, validation and test parts
    samples     four-digit numbers and house numbers, drawn in samples of n
    models      the networks that score images
    methods     losses of scores: sorting networks, and what they are compared with; losses of logits
    metrics     EM, EW, EM5
    run         the records Run and Result
    ranking     the task of most tables; classification is the task of the table topk
    training    one run, from its seed to its result, with checkpoints
    store       results on disk, by the hash of their run
    scheduling  many runs, in processes of this machine or on a Dask cluster
    timing      time and memory of every loss
    profiles    how long and on what: quick, standard, paper
    tables      which runs a table needs
    paper       the paper's numbers
    checking    what is refused before anything is trained
    making      a table from what the user asks to its figures
    writing     tables as JSON, Markdown and pictures
    user_files  a user's own method or data set, in one Python file
    cli         the commands
"""

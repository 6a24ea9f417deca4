"""The kernels that run on a GPU: one thread for each sequence, the same algorithms as those for cores.

They are made by functions of what must be known when they are compiled: the number of states, the families of the
columns, whether times and costs have 64 bits or 32. All rows of 32 sequences are held interleaved (`layout`), so that
neighbouring threads read neighbouring numbers. numba's simulator runs them where there is no GPU.
"""

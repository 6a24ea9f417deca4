"""What the engine `Cuda` is made of: where sequences lie on the device, what columns are there, and its passes.

Imported when an engine first holds blocks, since numba's part for devices takes its time.
"""

"""Functions of numbers that mean the same on a device and in numba's simulator, which is Python.

Python's own raise where a float has infinity; numpy's do not, but not all of them are known on a device.
"""

import math
from types import FunctionType
from typing import Any

import numpy as np
from numba import cuda
from numba.core import config

try:
    from numba.cuda.core import config as device_config  # of numba-cuda
except ImportError:
    device_config = config

# A grid is as small as the data are: no fault of theirs.
device_config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
SIMULATED = bool(config.ENABLE_CUDASIM)
# Threads of a block: in the simulator each is one of Python, and slow.
THREADS = 2 if SIMULATED else 64
# Blocks of a sum: always as many, so that it is made in the same order on every card.
SUM_THREADS, SUM_BLOCKS = (2, 2) if SIMULATED else (128, 1024)
# Rows of so many sequences are held side by side: those that a warp reads at once.
LANES = 32

if SIMULATED:
    exp, expm1, log, log1p, sqrt, nextafter, lgamma, cos, sin = (
        np.exp, np.expm1, np.log, np.log1p, np.sqrt, np.nextafter, math.lgamma, np.cos, np.sin
    )  # fmt: skip
else:
    exp, expm1, log, log1p, sqrt, nextafter, lgamma, cos, sin = (
        math.exp, math.expm1, math.log, math.log1p, math.sqrt, math.nextafter, math.lgamma, math.cos, math.sin
    )  # fmt: skip


def on_device(kernels: list[Any], leaves: dict[str, Any]) -> Any:
    """Kernels of a processor compiled for a device, from the same source; returns the last one.

    What they call by the names of `leaves`, or of kernels before them in the list, is that of the device.
    """
    known = dict(leaves)
    for kernel in kernels:
        plain = getattr(kernel, "py_func", kernel)
        own = FunctionType(plain.__code__, plain.__globals__ | known, plain.__name__)
        known[plain.__name__] = found = cuda.jit(device=True)(own)
    return found

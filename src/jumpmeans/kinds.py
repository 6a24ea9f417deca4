"""How a row was seen: the codes that data and kernels share.

SNAPSHOT: the state at this instant, and no word of what happened since the row before.
TRANSITION: the state held from the row before until this instant, and then became this one (or stayed).
ENTRY: this state was entered at this instant, from one unknown.
HELD: the state of the row before holds on; a time of interest inside the gap before a TRANSITION, never a user's row.
"""

import numpy as np

SNAPSHOT, TRANSITION, ENTRY, HELD = 0, 1, 2, 3
NAMES = ("snapshot", "transition", "entry", "held")
"""What tables call them, by code."""
SAID = tuple(name for code, name in enumerate(NAMES) if code != HELD)
"""Those that rows may be said to be of."""
# The laws of each kind, by code: all that kernels ask. One that combines them in another way needs no more than a row.
BARS = np.array([False, True, False, True])
"""Whether nothing happened in the gap before the row: a jump is at the row itself, or there is none."""
PINS = np.array([False, True, True, False])
"""Whether a jump may be at the very time of the row."""
FORCES = np.array([False, False, True, False])
"""Whether one must be."""

"""What there is room for: a request that cannot fit is refused before it asks for the memory."""

from __future__ import annotations

import re
from pathlib import Path

from .errors import TooLargeError

# Less than this is asked for without a look at what there is.
SMALL = 1 << 28
# Bytes that a fit takes beside its panel, at least: for each row, for each number in it, and for each sequence.
OF_A_ROW, OF_A_NUMBER, OF_A_SEQUENCE = 32, 20, 130


def require_room(what: str, nbytes: float, way_out: str) -> None:
    """Refuse what needs more bytes than there are."""
    if nbytes < SMALL:
        return
    free = free_memory()
    if free is not None and nbytes > free:
        raise TooLargeError(
            f"{what} must fit into the memory of this machine, of which {free / 1e9:.1f} GB are free, got an estimate "
            f"of {nbytes / 1e9:.1f} GB; {way_out}."
        )


def free_memory() -> int | None:
    """Bytes that a process may still have; None where the system does not tell (it is Linux that does)."""
    try:
        free = 1024 * number_of("MemAvailable:", Path("/proc/meminfo"))
    except (OSError, ValueError):
        return None
    try:  # a container may have less; of what it uses, files that were read can be let go
        most, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
        return min(free, max(most - used + number_of("inactive_file", Path("/sys/fs/cgroup/memory.stat")), 0))
    except (OSError, ValueError):
        return free


def number_of(name: str, path: Path) -> int:
    """The number behind a name in a file of lines."""
    (found,) = re.findall(rf"^{name}\s+(\d+)", path.read_text(), re.MULTILINE)
    return int(found)


def of_a_fit(rows: int, columns: int, sequences: int) -> float:
    """Bytes that a fit takes beside its panel, at least."""
    return float((OF_A_ROW + OF_A_NUMBER * columns) * rows + OF_A_SEQUENCE * sequences)

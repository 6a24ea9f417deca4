"""A process made ready for probabilities over gaps of time: e^{Qt} and the integrals that expectations need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, power_of_two
from ..kernels.forward_backward import power_tables
from .process import Process

# Eigenvectors worse than this lose too many digits: expected statistics then go by digits.
LARGEST_CONDITION = 1e4


@dataclass(frozen=True, eq=False)
class Propagator:
    """A process made ready for the probability kernels: tables for e^{Qt}, and the eigenbasis of Q if it is sound."""

    process: Process
    tables: tuple[Any, ...]
    eigen: tuple[Any, ...]
    basis: tuple[NDArray[np.complex128], NDArray[np.complex128]]

    @classmethod
    def of(cls, process: Process, longest_gap: float) -> Propagator:
        """Tables for gaps up to the longest one."""
        Q = process.rate_matrix
        unit = power_of_two(float(process.rates.max()))  # so that the unit of time cannot change a digit
        eigenvalues, V = (part.astype(np.complex128) for part in np.linalg.eig(Q / unit))
        eigenvalues *= unit
        sound = np.linalg.cond(V) < LARGEST_CONDITION
        # of a pair of complex vectors, the real and imaginary parts of the first one
        first, second = eigenvalues.imag > 0, eigenvalues.imag < 0
        real = V.real.copy()
        real[:, second] = V.imag[:, first]
        inverse_T = np.ascontiguousarray(np.linalg.inv(real).T) if sound else real
        inverse_T[:, first] *= 0.5
        inverse_T[:, second] *= -0.5
        left = inverse_T.astype(np.complex128)
        left[:, first] += 1j * inverse_T[:, second]
        left[:, second] = left[:, first].conj()
        differences = eigenvalues[:, None] - eigenvalues[None, :]
        inverses = 1.0 / np.where(differences == 0, 1.0, differences)
        eigen = (bool(sound), eigenvalues, real, inverse_T, differences, inverses)
        return cls(process, power_tables(Q, longest_gap), eigen, (left, V.T))

    def transform(self, S: NDArray[np.complex128]) -> Floats:
        """Statistics gathered in the eigenbasis, back in states."""
        sound, eigenvalues = self.eigen[:2]
        if not sound:
            return np.zeros(S.shape)
        # of a pair of complex eigenvalues, what the second one adds is the conjugate of what the first one adds
        share = 1.0 + np.sign(eigenvalues.imag)
        shares = np.where(eigenvalues.imag[:, None] == 0, share[None, :], share[:, None])
        left, right = self.basis
        return np.asarray((left @ (shares * S) @ right).real)

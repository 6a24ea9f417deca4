"""Particle Markov chain Monte Carlo for the infinite model, whose number of states is not given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from ..data.known import snapshots_only
from ..data.panel import Panel
from ..emissions import Family, Record, find_family, require_particles
from ..emissions.priors import ParticlePrior
from ..engines import get_engine
from ..errors import PanelError
from ..estimators.read_out import all_at_once, as_panel
from ..fit.setup import typical_gap
from ..history import History
from ..model.process import Process
from ..options import Rule, auto, check_options, count, family, number, scale, seed
from ..passes import Block
from ..progress import track
from ..stored import stored
from ..stored.kinds import require
from .particle_chain import HyperPriors, InfinitePaths, InfiniteSample, ParticleChain, carry_states
from .sampled import SampledReadOut, copied, publish_first

# α_0 ~ Gamma(1, 1).
CONCENTRATION_PRIOR = (1.0, 1.0)
# γ ~ Gamma(3, 3 / typical gap): mean one gap; with a shape of 1 the mean rate κ_0 / γ would be infinite.
TIME_SHAPE = 3.0
# The number of states grows with α_0, and with its square the memory they take: beyond this there is no end in sight.
MOST_CONCENTRATION = 1000.0
# More would not end, or not fit into memory.
MOST_DRAWS, MOST_PARTICLES = 10**9, 10**6


@stored
class ParticleGibbs(SampledReadOut):
    """Posterior samples of the infinite Markov jump process by particle Markov chain Monte Carlo.

    The number of states is not given: states are drawn from a hierarchical gamma-exponential process, born and
    dropped as the chain runs. Nothing is truncated.

    Parameters
    ----------
    emission : "categorical", "gaussian" or "lognormal"
        Family of the only value column.
    n_particles : int
        Particles of conditional SMC, the current path among them; at least 2.
    n_iter, burn_in : int
        Iterations, and how many of the first are not kept.
    concentration : float or "auto"
        α_0: how readily new states are born, at most 1000; auto: drawn under Gamma(1, 1).
    prior_time : float or "auto"
        γ: time added to each state before its rates are drawn, in the unit of the panel; auto: drawn under a gamma
        prior whose mean is the median gap, so that the unit of time does not matter.
    engine : "threads", "dask", "cuda" or an engine such as `jumpmeans.engines.Threads(n_jobs=2)`
        For read-outs; the chain itself is sequential.
    random_state : int, Generator or None

    Attributes
    ----------
    samples_ : list of InfiniteSample
        Kept iterations: measures and emission of the states in use.
    n_states_history_ : (n_iter,)
        Number of states in use after each iteration.
    n_states_ : int
        The number most frequent among the kept iterations.
    process_, states_ : Process, (M,)
        States in use in the last iteration, in the order of their values: one posterior sample, not an average, since
        states of iterations that differ in number cannot be matched.
    trajectories_ : Trajectories
        Paths of the last iteration.
    history_ : History
        Log-density of paths and values given measures and emissions after each iteration, with times.
    n_iter_ : int

    Notes
    -----
    `predict_value` averages predictive distributions over the kept iterations: forward-backward under the measures of
    each, with all states not in use taken as one more that shows what the prior shows and moves on at the mean rates
    of a row never used. `predict`, `predict_proba` and `decode` speak of the states of the last iteration alone.

    The paper leaves the priors and hyperparameters of its sampler open; those here, and the derivation of every step,
    are in the docstring of the module `particle_chain`. First states are drawn from a row of their own under μ_0.
    Values start in the state of their symbol (measurements in that of their quarter), with jumps at the observation
    times. A sequence of weight k stands for k copies of it; k must be whole.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_icu_pressure("nih4").select(range(5))
    >>> model = jm.comparators.ParticleGibbs(n_particles=20, n_iter=20, burn_in=10).fit(panel)
    >>> len(model.samples_), model.n_states_history_.shape
    (10, (20,))
    """

    rules: ClassVar[dict[str, Rule]] = {
        "emission": family,
        "n_particles": count(2, MOST_PARTICLES),
        "n_iter": count(most=MOST_DRAWS),
        "burn_in": count(0, MOST_DRAWS),
        "concentration": auto | number(above=0),
        "prior_time": auto | scale(),
        "random_state": seed,
    }

    def __init__(
        self,
        *,
        emission: Family = "categorical",
        n_particles: int = 100,
        n_iter: int = 300,
        burn_in: int = 100,
        concentration: float | str = "auto",
        prior_time: float | str = "auto",
        engine: Any = "threads",
        random_state: Any = 0,
    ) -> None:
        self.emission = emission
        self.n_particles = n_particles
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.concentration = concentration
        self.prior_time = prior_time
        self.engine = engine
        self.random_state = random_state

    def fit(self, panel: Any, y: None = None) -> Self:
        """Sample the posterior given a panel, or a frame with columns id, time and value."""
        check_options(self, self.rules)
        self._check_more()
        panel = as_panel(panel)
        snapshots_only(panel, "ParticleGibbs")
        with all_at_once(self) as new:
            new._sample(panel)
        return self

    def _sample(self, panel: Panel) -> None:
        wide, copies = copied(panel, "ParticleGibbs")
        chain = self._start(wide)
        self._seed_ = int(chain.rng.integers(2**32))
        history = History()
        samples: list[InfiniteSample] = []
        sizes = np.zeros(self.n_iter, np.int64)
        for i in track(self.n_iter, "ParticleGibbs"):
            chain.step()
            sizes[i] = chain.sample.n_states
            history.add(chain.log_likelihood())
            if i >= self.burn_in:
                samples.append(chain.sample)
        self.samples_, self.n_states_history_ = samples, sizes
        self.n_states_ = Counter(sizes[self.burn_in :].tolist()).most_common(1)[0][0]
        self.history_, self.n_iter_ = history, self.n_iter
        self._prior_ = chain.prior
        last = samples[-1]
        order = Record([last.emission]).stable_order(chain.paths.time)
        self.process_ = last.reorder(order).process(None)
        self.states_ = self.process_.states
        dwells = chain.paths.to_dwells()
        dwells = dwells._replace(states=np.argsort(order).astype(np.int32)[dwells.states])
        self.trajectories_, self._seen_ = publish_first(panel, dwells, copies, self.states_), panel
        self._last_value_ = None

    def _start(self, panel: Panel) -> ParticleChain:
        """A chain whose states are the symbols, or quarters of the values."""
        if panel.n_columns != 1:
            raise PanelError(
                f"ParticleGibbs needs one value column, got {panel.n_columns}: {list(panel.columns)}; name one."
            )
        column: Any = find_family(self.emission).blank(panel, 0, 1, [0], 0.0)
        x = np.array(column.encode(panel, 0))
        if not np.isfinite(x).any():
            raise PanelError(f"column {panel.columns[0]!r} must hold at least one value, got none; check the column.")
        prior = column.prior(x, panel)
        block = Block.of(panel, x[:, None])
        paths = InfinitePaths.from_rows(block, carry_states(prior.start(x), block.offsets))
        gap = typical_gap(panel)
        hyper = HyperPriors(
            None if isinstance(self.concentration, str) else float(self.concentration),
            None if isinstance(self.prior_time, str) else float(self.prior_time),
            CONCENTRATION_PRIOR,
            (TIME_SHAPE, TIME_SHAPE / gap),
        )
        rng = np.random.default_rng(self.random_state)
        M = len(paths.time)
        start = InfiniteSample(
            np.full(M + 1, 1.0 / (M + 1)),
            np.zeros((M, M + 1)),
            np.ones(M + 1),
            prior.draw(x, paths.row_states, M, rng),
            1.0 if hyper.concentration is None else hyper.concentration,
            gap if hyper.prior_time is None else hyper.prior_time,
        )
        held = get_engine(self.engine).hold([block])
        chain = ParticleChain(block, held, prior, hyper, self.n_particles, paths, start, rng)
        chain.draw_measures()
        return chain

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file."""
        super().check_fields()
        samples = vars(self).get("samples_")
        require(isinstance(samples, list) and samples, "a sampler must have samples")
        require(all(isinstance(sample, InfiniteSample) for sample in self.samples_), "samples_ must hold samples")
        require(isinstance(vars(self).get("_prior_"), ParticlePrior), "a sampler must have a prior")
        unseen = self._prior_.unseen()
        for sample in self.samples_:
            sample.process(unseen)  # refuses what does not fit

    def _processes(self) -> Iterator[Process]:
        unseen = self._prior_.unseen()
        return (sample.process(unseen) for sample in self.samples_)

    def _last_process(self) -> Process:
        return self.process_

    def _check_more(self) -> None:
        """What no rule of one option can say."""
        require_particles(find_family(self.emission))
        if self.burn_in >= self.n_iter:
            raise ValueError(f"burn_in must be below n_iter={self.n_iter}, got {self.burn_in}.")
        if not isinstance(self.concentration, str) and self.concentration > MOST_CONCENTRATION:
            raise ValueError(
                f"concentration must be at most {MOST_CONCENTRATION:g}, got {self.concentration!r}: it would ask for "
                "more states than there is memory for; a few units are usual."
            )

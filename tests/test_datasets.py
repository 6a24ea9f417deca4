from pathlib import Path

import numpy as np
import pytest

from jumpmeans import datasets

FOLDER = Path(datasets.__file__).parent


@pytest.mark.parametrize(
    ("load", "n_sequences", "n_observations", "labels"),
    [
        (datasets.load_edss, 93, 394, [1, 2, 3]),
        (datasets.load_sleep, 14, 10_766, [0, 1, 2, 3]),
        (datasets.load_credit_ratings, 1_635, 5_142, list(range(9))),
        (lambda: datasets.load_icu_pressure("nih4"), 69, 2_208, [0, 1, 2, 3]),
    ],
)
def test_sizes_and_labels(load, n_sequences, n_observations, labels):
    panel = load()
    assert (panel.n_sequences, panel.n_observations) == (n_sequences, n_observations)
    assert panel.labels().tolist() == labels
    assert panel.observed.all()


def test_icu_pressure():
    panel = datasets.load_icu_pressure(["sys", "dia", "nih4"])
    assert (panel.lengths == 32).all()
    assert (panel.end_times >= 23).all()
    np.testing.assert_array_equal(panel.values[0], [105, 67, 0])
    np.testing.assert_array_equal(np.digitize(panel.values[:, 0], datasets.PRESSURE_BINS), panel.values[:, 2])


def test_edss_windows_of_one_person_share_a_group():
    panel = datasets.load_edss()
    assert len(set(panel.groups)) == 32
    assert all(name.startswith(person) for name, person in zip(panel.ids, panel.groups, strict=True))
    assert (panel.end_times - panel.start_times).max() < 3


def test_sleep_device_agrees_with_the_truth_more_often_than_not():
    panel = datasets.load_sleep(["obs", "state"])
    assert np.mean(panel.values[:, 0] == panel.values[:, 1]) > 0.5


@pytest.mark.parametrize("path", sorted((FOLDER / "data").iterdir()), ids=lambda path: path.name)
def test_every_file_is_named_in_the_notice(path):
    assert f"`{path.name}`" in (FOLDER / "licences" / "NOTICE.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in datasets.__all__ if name.startswith("load_")])
def test_docstrings_say_whose_data_they_are(name):
    text = " ".join(getattr(datasets, name).__doc__.split())
    assert "Not the data of the paper." in text
    assert "Examples" in text

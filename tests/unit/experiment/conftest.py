"""A tuning on the bench of known response surfaces."""

import pytest
from tune_fake import COMMAND

from pipeprof.experiment.tune.search import TuneWish, run_tune


@pytest.fixture
def tune(tmp_path):
    """`tune(bench, budget_s)`: the state, and what was said."""

    def run(bench, budget_s=3600.0, folder="tuned", **wish):
        said = []
        (tmp_path / folder).parent.mkdir(exist_ok=True)
        state, _ = run_tune(TuneWish(COMMAND, tmp_path, tmp_path / folder, budget_s, **wish), bench, said.append)
        return state, said

    return run

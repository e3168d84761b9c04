"""A tuning on the bench of known response surfaces."""

import json

import pytest
from tune_fake import COMMAND

from pipeprof.experiment.journal import SESSION
from pipeprof.experiment.tune.patch import content_of
from pipeprof.experiment.tune.search import TuneWish, run_tune


@pytest.fixture
def tune(tmp_path):
    """`tune(bench, budget_s)`: the state. Of the last one also `said`, its `content()` and its final `word()`."""

    def run(bench, budget_s=3600.0, folder="tuned", **wish):
        run.said = []
        wish = TuneWish(COMMAND, tmp_path, tmp_path / folder, budget_s, **wish)
        run.state, _ = run_tune(wish, bench, run.said.append)
        return run.state

    def content(*, unchecked=False):
        return content_of(run.state, tmp_path, allow_unchecked=unchecked)

    def refused(error, words, bench, *args, **wish):
        with pytest.raises(error, match=words) as caught:
            run(bench, *args, **wish)
        return caught.value

    def edit(**facts):
        session = tmp_path / "tuned" / SESSION
        session.write_text(json.dumps(json.loads(session.read_text()) | facts))

    run.content, run.word = content, lambda **more: content(**more)["verdict"]
    run.refused, run.edit, run.session = refused, edit, tmp_path / "tuned" / SESSION
    return run

"""There are words for every rule, stage and fact that the rules of the verdict name."""

import pytest
from every import every

from pipeprof.report.words import evidence
from pipeprof.verdict import rules, verdict_from_queues

OUTCOMES = (*rules.VERDICTS, *rules.DOUBTS, *rules.KINDS, *rules.UNTIMED_KINDS, *rules.SINK_STAGES)
CLAUSES = [clause for entry in (*rules.RULES, *OUTCOMES) for clause in entry.when] + list(rules.SATURATED)


def test_every_rule_and_choice_has_words_and_there_are_no_others():
    assert set(evidence.RULES) == {verdict_from_queues.RULE, *(rule.name for rule in rules.RULES)}
    assert set(evidence.CHOICES) == {rule.chooses for rule in rules.RULES}


def test_every_fact_has_words_and_there_are_no_others():
    assert set(evidence.FACTS) == {clause.fact for clause in CLAUSES}


@every(CLAUSES)
def test_every_condition_can_be_said(clause):
    assert evidence.condition(clause.fact, clause.relation, clause.bound).startswith(evidence.FACTS[clause.fact][0])


@pytest.mark.parametrize(
    ("fact", "relation", "bound", "text"),
    [
        ("wait_share", "at_most", 0.2, "the training's wait for data: at most 20 %"),
        ("python_cores", "at_least", 0.85, "CPU of Python code inside the process: at least 0.85 cores"),
        ("batches", "short_of", 20, "batches of the steady state: less than 20 or not known"),
        ("gil_share", "unknown", None, "time that the interpreter's lock (GIL) is held: not measured"),
    ],
)
def test_conditions_have_their_units(fact, relation, bound, text):
    assert evidence.condition(fact, relation, bound) == text

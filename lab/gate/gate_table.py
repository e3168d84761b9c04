"""The page with the simulated error rates, docs/gate-numbers.md."""

from __future__ import annotations

import platform
import re
from importlib.metadata import version

WHAT = {
    "quiet": "synthetic: AR(1) .5, steps 3 %, processes .5 %, 1 % spikes",
    "samejob": "synthetic: AR(1) .6, steps 8 %, processes 1.5 % with heavy tails, a slow wave of 1 %, 2 % spikes",
    "saturated": "synthetic, an overloaded host: AR(1) .5 to .8, steps 44 to 84 %, processes 17 to 31 %",
    "scaled": "measured, log deviations x 0.1: a decent runner",
    "real": "measured: 19 processes of one MindSpore 2.10 training, on an overloaded 2-core host",
    "heavy": "synthetic: processes 5 to 30 % with the tails of Student's t with 2 degrees of freedom, and one in ten is 1.5 to 20 times as slow as a whole",
    "diffjob": "as samejob, but each side has its own job, with an effect of 5.4 %",
}

ORDER = (
    "Goals", "Sessions with planned looks", "With few repetitions", "Within a budget", "Sessions without hope",
    "Operators", "Running it again", "Two runners", "Another job", "Counted work", "Other rules on the same samples",
)  # fmt: skip
RUN_S = 10  # a repetition, for the minutes to a verdict
FEWEST = 3  # repetitions per side, judged once: the page shows no fewer; all are drawn, and count for the goals
BUDGETS = (4, 8)  # likewise, of sessions within a budget
CHANGES = (0.0,)  # of sessions without hope, likewise

HEAD = """# The gate's numbers

Written by `python lab/gate/simulate.py --write docs/gate-numbers.md` on {date}: pipeprof {pipeprof}, Python {python}, NumPy {numpy}, SciPy {scipy}; fixed
seeds. `make test-slow` holds the goals. The simulations call the functions that judge (`pipeprof/verdict/gate/`), with the default policy: three metrics
that decide, two that inform, and looks at 5, 8, 12, 16 and 20 repetitions per side.

A repetition is a process. In every trial base and new are drawn from the same source; then the step times of the new side are multiplied. The sources:

{sources}

Measured processes are drawn with replacement, 100 consecutive steps of each. Their peak memory was not measured; the median operator time stands in for
it. In the synthetic sources the two step metrics, data wait and the first step of a process are correlated as they are in training. The measured samples
are not part of this repository: without them the program leaves `scaled` and `real` out.
"""


def percent(share, digits=2):
    return f"{100 * share:.{digits}f} %"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def page(found, date):
    names = [*found["sessions"], "diffjob"]
    versions = {name: version(name) for name in ("pipeprof", "numpy", "scipy")}
    sources = "\n".join(f"* **{name}**: {WHAT[name]}" for name in names)
    head = HEAD.format(date=date, python=platform.python_version(), sources=sources, **versions)
    return "\n".join([head, _goals(found), *_drawn(found).values()]).rstrip("\n") + "\n"


def updated(old, found, date):
    """The page with the parts that were drawn anew, each with its date; goals of the others stay as they were."""
    head, *sections = re.split(r"^(?=## )", old, flags=re.MULTILINE)
    by_title = {section.partition("\n")[0]: section.rstrip("\n") for section in sections}
    fresh = {text.partition("\n")[0]: f"{text}\nDrawn on {date}." for text in _drawn(found).values()}
    told = {(goal, text) for goal, text, *_ in goals(found)}
    lines = by_title["## Goals"].split("\n")
    kept = [line for line in lines if tuple(cell.strip() for cell in line.split("|")[1:3]) not in told]
    by_title["## Goals"] = "\n".join([*kept, *_goals(found).rstrip("\n").split("\n")[4:]])
    drawn = {name for part in found.values() for name in part}
    listed = [f"* **{name}**: {what}" for name, what in WHAT.items() if f"**{name}**" in head or name in drawn]
    head = re.sub(r"(?:^\* .*\n)+", lambda _: "\n".join(listed) + "\n", head, count=1, flags=re.MULTILINE)
    together = by_title | fresh
    order = sorted(together, key=lambda title: ORDER.index(title.removeprefix("## ")))
    return head.rstrip("\n") + "\n\n" + "\n\n".join(together[title] for title in order) + "\n"


def _drawn(found):
    """The section of each part that was drawn, in the order of the page."""
    sections = {
        "sessions": _sessions, "few": _few, "budgets": _budgets, "patience": _patience, "operators": _operators,
        "reruns": _reruns, "two_runners": _two_runners, "other_job": _other_job, "counted": _counted, "peers": _peers,
    }  # fmt: skip
    return {name: section(found) for name, section in sections.items() if name in found}


def _goals(found):
    rows = [[goal, text, measured, "yes" if held else "**no**"] for goal, text, measured, held in goals(found)]
    return "## Goals\n\n" + table(["goal", "says", "measured", "held"], rows)


def goals(found):
    """(name, what it says, what was measured, whether it is held), of the parts that were drawn."""
    rates, ops = found.get("sessions", {}), found.get("operators", {})
    if rates:
        yield _first(rates)
    for source, by_reps in ops.items():
        text = f'205 operator metrics, 8 repetitions, any false "regressed": at most 1 % ({source})'
        yield "G2", text, percent(by_reps[8]["any"]), by_reps[8]["any"] <= 0.01
    for source, least, most in (("quiet", 0.99, 8), ("samejob", 0.99, 14), ("scaled", 0.94, 17)):
        if source in rates:
            yield _power(rates[source][0.05], f"{source}: +5 %", least, most)
            yield _power(rates[source][0.10], f"{source}: +10 %", 0.999, 12)
    for source, by_reps in ops.items():
        text = f"one operator of 41 at +10 %: found in 70 % with 8, 95 % with 12 repetitions ({source})"
        eight, twelve = by_reps[8]["found"], by_reps[12]["found"]
        yield "G4", text, f"{percent(eight, 1)}, {percent(twelve, 1)}", eight >= 0.70 and twelve >= 0.95
    for source in ("saturated", "real"):
        if source in rates:
            yield _noisy(source, rates[source][0.0])
    if "few" in found:
        yield _few_goal(found["few"])
        yield _far_goal(found["few"])
    if "budgets" in found:
        yield _budget_goal(found["budgets"])
    if "two_runners" in found:
        yield _two_goal(found["two_runners"])
    if "reruns" in found:
        worst = max(found["reruns"], key=lambda name: found["reruns"][name][0])
        text = 'five re-runs of identical code that join one session: at most 1 % false "regressed"'
        yield "G9", text, f"{percent(found['reruns'][worst][0])} ({worst})", found["reruns"][worst][0] <= 0.01


def _two_goal(found):
    worst = max(
        (cells[0.0][2], name) for name, by_alpha in found.items() for alpha, cells in by_alpha.items() if alpha < 0.01
    )
    text = 'two runners, step time or data wait: upper 95 % bound of false "regressed" by both at most 0.1 % in every source'
    return "G13", text, f"bound {percent(worst[0], 3)} ({worst[1]})", worst[0] <= 0.001


def _few_goal(found):
    worst = max((cells[1.0][0], name, reps) for name, by_reps in found.items() for reps, cells in by_reps.items())
    text = '2 to 4 repetitions per side, judged once: at most 1 % false "regressed" in every source'
    return "G11", text, f"{percent(worst[0])} ({worst[1]}, {worst[2]})", worst[0] <= 0.01


def _far_goal(found):
    worst = min((by_reps[3][10.0][0], name) for name, by_reps in found.items() if name != "heavy")
    text = "step times x 10 are found with 3 repetitions per side in at least 95 %, in every source but `heavy`"
    return "G12", text, f"{percent(worst[0])} ({worst[1]})", worst[0] >= 0.95


def _budget_goal(found):
    worst = max(
        (by_effect[0.0][0], reps, name) for name, by_reps in found.items() for reps, by_effect in by_reps.items()
    )
    text = 'looks planned within a budget of 4 to 14 repetitions per side: at most 1 % false "regressed"'
    return "G10", text, f"{percent(worst[0])} ({worst[2]}, {worst[1]})", worst[0] <= 0.01


def _first(rates):
    worst = max(rates, key=lambda name: rates[name][0.0].bound)
    one = rates[worst][0.0]
    text = 'false "regressed" per comparison, all metrics that decide, all looks: upper 95 % bound at most 1 % in every source'
    return "G1", text, f"{percent(one.any_regressed)}, bound {percent(one.bound)} ({worst})", one.bound <= 0.01


def _power(one, what, least, most):
    text = f"{what} found in at least {100 * least:g} %, with at most {most} repetitions on average"
    held = one.regressed >= least and one.reps <= most
    return "G3", text, f"{percent(one.regressed)}, {one.reps:.1f}", held


def _noisy(source, one):
    text = f"{source}: at least 99 % inconclusive; regressed, worst of the metrics, at most .2 %"
    held = one.inconclusive >= 0.99 and one.worst_metric <= 0.002
    return (
        "G5",
        text,
        f"{percent(one.inconclusive)}; {percent(one.per_metric)}, worst {percent(one.worst_metric)}",
        held,
    )


def _sessions(found):
    rows = []
    for name, effects in found["sessions"].items():
        none, five, ten = (effects[effect] for effect in (0.0, 0.05, 0.10))
        rows.append([
            name, f"{percent(none.any_regressed)} (<= {percent(none.bound)})", percent(none.decided),
            " / ".join(percent(part) for part in (none.regressed, none.improved, none.unchanged)),
            f"{none.reps:.1f} / {none.reps_all:.1f}", f"{percent(five.regressed)}, {five.reps:.1f}",
            f"{percent(ten.regressed)}, {ten.reps:.1f}",
            " / ".join(f"{2 * reps * RUN_S / 60:.1f}" for reps in (none.reps_all, five.reps, ten.reps)),
        ])  # fmt: skip
    head = [
        "source", "identical code: any that decides regressed", "identical code: decided as a whole", "step time regressed / improved / unchanged",
        "repetitions: step time / all that decide", "+5 %: regressed, repetitions", "+10 %",
        "minutes to the verdict: identical code / +5 % / +10 %",
    ]  # fmt: skip
    trials = next(iter(found["sessions"].values()))[0.0].trials
    text = (
        f"{trials:,} sessions per cell; what is missing to 100 % is inconclusive. Repetitions are means per side. Minutes are for runs of {RUN_S} s, both\n"
        "sides one after the other.\n\n"
    )
    return "## Sessions with planned looks\n\n" + text + table(head, rows)


def _few(found):
    rows = []
    for name, by_reps in found["few"].items():
        for reps, cells in ((reps, cells) for reps, cells in by_reps.items() if reps >= FEWEST):
            (regressed, tested, improved, bound), *multiples = cells.values()
            shares = [f"{percent(both)} ({percent(alone)})" for both, alone, *_ in multiples]
            row = [name, reps, f"{percent(regressed)} ({percent(tested)}, <= {percent(bound)})"]
            rows.append([*row, percent(improved), *shares])
    head = ["source", "repetitions", "identical code: any regressed", "any improved", "x 1.5", "x 2", "x 3", "x 10"]
    text = (
        "Judged once with the whole alpha, as `compare` does: any metric that decides, 20,000 comparisons per cell, drawn after the rule was fixed. In brackets\n"
        "by the test alone, without [sides that lie far apart](gate-statistics.md#far-apart); then the upper end of the one-sided 95 % interval. Two a side are\n"
        "not shown: they are judged only with `least_reps = 2`, and never without the test.\n\n"
    )
    return "## With few repetitions\n\n" + text + table(head, rows)


def _budgets(found):
    rows = [
        [name, reps, *(f"{percent(planned)} ({percent(cut)})" for planned, cut in by_effect.values())]
        for name, by_reps in found["budgets"].items()
        for reps, by_effect in by_reps.items()
        if reps in BUDGETS
    ]
    head = ["source", "there is time for", "identical code: any regressed", "+5 %: found", "+10 %: found"]
    text = (
        "The last look is the last one that there is time for, and has all alpha that is left; in brackets, the policy's looks cut off by the budget. Any metric\n"
        "that decides, 10,000 sessions per cell, repetitions per side.\n\n"
    )
    return "## Within a budget\n\n" + text + table(head, rows)


def _patience(found):
    rows = [
        [
            name,
            f"+{effect:.0%}" if effect else "identical code",
            *(f"{percent(one.any_regressed)} / {percent(one.decided)}, {one.reps_all:.1f}" for one in pair),
        ]
        for name, by_effect in found["patience"].items()
        for effect, pair in by_effect.items()
        if effect in CHANGES
    ]
    head = ["source", "change", "stops without hope", "to the end"]
    text = (
        'Sessions that stop when the looks to come would most likely decide nothing ("hopeless"), and sessions that never stop early: any that decides\n'
        "regressed / decided as a whole, repetitions per side; 5,000 sessions per cell. Stopping loses no find of +10 %: `make test-slow` holds that.\n\n"
    )
    return "## Sessions without hope\n\n" + text + table(head, rows)


def _operators(found):
    rows = [
        [source, reps, *(percent(rates[key]) for key in ("any", "found", "beside"))]
        for source, by_reps in found["operators"].items()
        for reps, rates in by_reps.items()
    ]
    head = [
        "source",
        "repetitions",
        "identical code: any false",
        "one operator +10 %: found",
        "any other called slower",
    ]
    text = "41 operators x 5 statistics, as shares, Holm at the policy's alpha over all 205. Found: any statistic of the operator.\n\n"
    return "## Operators\n\n" + text + table(head, rows)


def _reruns(found):
    rows = [
        [name, percent(joined), percent(fresh), f"{trials:,}"]
        for name, (joined, fresh, trials) in found["reruns"].items()
    ]
    head = ["source", "re-runs join the session", "each re-run is a new session", "trials"]
    text = 'Any "regressed" in five runs of the gate on identical code, 20 repetitions per side each.\n\n'
    return "## Running it again\n\n" + text + table(head, rows)


def _two_runners(found):
    rows = []
    for name, by_alpha in found["two_runners"].items():
        for alpha, (none, *changes) in ((alpha, cells.values()) for alpha, cells in by_alpha.items()):
            told = f"{percent(none[0])} / {percent(none[1])} (<= {percent(none[2])})"
            rows.append([name, alpha, told, *(f"{percent(one)} / {percent(both)}" for one, both, _ in changes)])
    head = ["source", "`alpha`", "identical code: one runner / both", "+3 %", "+5 %", "+10 %"]
    text = (
        'The times that decide (step time, data wait): "regressed" on one runner / on both, with `confirm = "other-runner"`, in two sessions whose noise is drawn\n'
        "apart; then the upper end of the one-sided 95 % interval. 10,000 pairs of sessions per cell. A cause outside the code that slows both runners (a mirror\n"
        "that answers slowly, say) is not simulated. Where a machine decides at all, two runners with an `alpha` of 0.05 each find about as much as one with\n"
        "0.008, and are wrong less often.\n\n"
    )
    return "## Two runners\n\n" + text + table(head, rows)


def _other_job(found):
    rows = [[percent(share) for share in found["other_job"].values()]]
    head = ["identical code", *(f"+{effect:.0%}" for effect in found["other_job"] if effect)]
    text = (
        "Called regressed: new in a job of its own, against a baseline of 8 past jobs; effect of a job 5.4 %. "
        "With fewer past jobs only a change of 30 % and more counts.\n\n"
    )
    return "## Another job\n\n" + text + table(head, rows)


def _counted(found):
    def cell(rates):
        instructions, size = (percent(rate, 0) for rate in rates)
        return (
            instructions
            if size == "0 %"
            else f"bytes {size}"
            if instructions == "0 %"
            else f"{instructions}, bytes {size}"
        )

    rows = [[kind, *(cell(rates) for rates in by.values())] for kind, by in found["counted"].items()]
    head = [
        "what changes in a map",
        *(f"+{grown:.0%}" if grown else "identical code" for grown in next(iter(found["counted"].values()))),
    ]
    text = (
        'How many of 40 drawn functions are called "regressed" by the instructions or the bytes for a row, when what they do grows by so much. The functions take\n'
        "300 to 30,000 instructions. One repetition a side decides, on any machine under any load; where chance decides what a row takes, five a side do. Changes\n"
        "below 0.5 % or 20 instructions never count, which is why a percent of a small function is missed. What no count sees (C, waiting, settings) only times\n"
        "show. `count/` (rows, batches, compilations, executions of operators) is compared exactly, too: any change is seen, and nothing else.\n\n"
    )
    return "## Counted work\n\n" + text + table(head, rows)


def _peers(found):
    names = list(found["peers"])
    rules = next(iter(found["peers"].values()))
    rows = [
        [rule, *(" / ".join(f"{100 * share:.1f}" for share in found["peers"][name][rule].values()) for name in names)]
        for rule in rules
    ]
    ours = ["**pipeprof**, planned looks"]
    for name in names:
        effects = found["sessions"].get(name)
        ours.append(" / ".join(f"{100 * one.regressed:.1f}" for one in effects.values()) if effects else "not judged")
    text = (
        "Step time called slower, in %, on samples of the same sources: identical code / +5 % / +10 %. Each rule is the default of its tool; asv has its two\n"
        "processes, benchstat the ten runs that its documentation asks for.\n\n"
    )
    return "## Other rules on the same samples\n\n" + text + table(["rule", *names], [*rows, ours])

-- How long communication was under way in each training step, phase by phase. Events that overlap count once.
--
-- Of ranks that recorded communication: every step; with op windows, the steps inside them in which anything was
-- recorded. Whether an operator ran beside it is not known here, see step_part and step_split.
--
-- Reads: collective, op?, train_step
-- Kept: yes
-- Gives, one row per (rep, rank, step):
--   rep                       bigint   repetition
--   rank                      bigint   process rank
--   step                      bigint   position among all steps of the rank
--   position                  bigint   the step's number in the source, else among the rank's training steps
--   kind                      varchar  train, or warmup when the rank has no step of kind train
--   events                    bigint   communication events that touch the step
--   dur_ns                    bigint   ns    the whole step
--   comm_ns                   bigint   ns    communication was under way
--   data_wait_ns              bigint   ns    phase before FP; null when FP is not known
--   data_wait_comm_ns         bigint   ns    communication in that phase
--   forward_backward_ns       bigint   ns    phase from FP to BP; null when BP is not known
--   forward_backward_comm_ns  bigint   ns    communication in that phase
--   tail_ns                   bigint   ns    phase behind BP; null when BP is not known
--   tail_comm_ns              bigint   ns    communication in that phase
WITH having_step AS (
  SELECT
    rep, rank
  FROM collective
  WHERE step IS NOT NULL
  GROUP BY ALL
),

recorded AS (
  SELECT
    rep, rank,
    bool_or(train_step.in_window) AS has_window
  FROM train_step
  SEMI JOIN having_step USING (rep, rank)
  GROUP BY ALL
),

op_step AS (
  SELECT
    rep, rank, step
  FROM op
  WHERE step IS NOT NULL
  GROUP BY ALL
),

known AS (
  SELECT
    rep, rank, train_step.step, train_step.position, train_step.kind, train_step.start_ns, train_step.fp_ns,
    CASE WHEN train_step.fp_ns IS NOT NULL THEN train_step.bp_ns END AS bp_ns,
    train_step.end_ns, train_step.in_window, recorded.has_window
  FROM train_step
  INNER JOIN recorded USING (rep, rank)
),

event AS (
  SELECT
    rep, rank, step,
    greatest(collective.start_ns, known.start_ns) AS from_ns,
    least(collective.start_ns + collective.dur_ns, known.end_ns) AS until_ns,
    collective.start_ns AS begin_ns,
    collective.dur_ns
  FROM collective
  INNER JOIN known USING (rep, rank, step)
  WHERE collective.start_ns < known.end_ns AND collective.start_ns + collective.dur_ns > known.start_ns
),

-- What each event adds to the earlier ones: pieces that do not overlap.
piece AS (
  SELECT
    rep, rank, step, from_ns, until_ns,
    max(until_ns) OVER (
      PARTITION BY rep, rank, step ORDER BY from_ns ASC, until_ns ASC, begin_ns ASC, dur_ns ASC
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS covered_ns
  FROM event
),

added AS (
  SELECT
    rep, rank, step,
    CASE WHEN covered_ns > from_ns THEN covered_ns ELSE from_ns END AS from_ns,
    until_ns
  FROM piece
),

summed AS (
  SELECT
    rep, rank, step,
    count(added.until_ns) AS events,
    sum(greatest(added.until_ns - added.from_ns, 0)) AS comm_ns,
    sum(greatest(least(added.until_ns, known.fp_ns) - added.from_ns, 0)) AS front_ns,
    sum(
      CASE
        WHEN added.until_ns IS NOT NULL
          THEN greatest(least(added.until_ns, known.bp_ns) - greatest(added.from_ns, known.fp_ns), 0)
      END
    ) AS middle_ns,
    sum(greatest(added.until_ns - greatest(added.from_ns, known.bp_ns), 0)) AS behind_ns
  FROM known
  LEFT JOIN added USING (rep, rank, step)
  GROUP BY ALL
)

SELECT
  rep, rank, step, known.position, known.kind, summed.events,
  known.end_ns - known.start_ns AS dur_ns,
  CAST(coalesce(summed.comm_ns, 0) AS BIGINT) AS comm_ns,
  known.fp_ns - known.start_ns AS data_wait_ns,
  CASE WHEN known.fp_ns IS NOT NULL THEN CAST(coalesce(summed.front_ns, 0) AS BIGINT) END AS data_wait_comm_ns,
  known.bp_ns - known.fp_ns AS forward_backward_ns,
  CASE WHEN known.bp_ns IS NOT NULL THEN CAST(coalesce(summed.middle_ns, 0) AS BIGINT) END AS forward_backward_comm_ns,
  known.end_ns - known.bp_ns AS tail_ns,
  CASE WHEN known.bp_ns IS NOT NULL THEN CAST(coalesce(summed.behind_ns, 0) AS BIGINT) END AS tail_comm_ns
FROM known
INNER JOIN summed USING (rep, rank, step)
LEFT JOIN op_step USING (rep, rank, step)
WHERE NOT known.has_window OR (known.in_window AND (summed.events > 0 OR op_step.step IS NOT NULL))

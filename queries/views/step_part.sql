-- What each training step with recorded operators was spent on. The parts of a step add up to dur_ns exactly.
--
-- Every moment of a step counts once, for the first of these that it is: an operator of the forward pass, of the
-- backward pass, of the optimizer, any other operator that is no communication, one of the work on gradients before the
-- update, one of what follows the update; communication (so it is exposed: none of the rank's operators ran beside it),
-- before or behind bp_ns; inside the dataset iterator; none of these: the host.
-- Steps as in train_step, as far as operators were recorded in them. On a rank that has a device, operators are what
-- ran there meanwhile, of whatever step: a host that only launches is often a step ahead. No row of op_mark is one.
--
-- Reads: collective?, fetch?, op, op_info?, op_mark?, train_step
-- Kept: yes
-- Gives, one row per (rep, rank, step):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   step           bigint   position among all steps of the rank
--   kind_step      bigint   position among the rank's training steps
--   kind           varchar  train, or warmup when the rank has no step of kind train
--   dur_ns         bigint   ns    the whole step
--   forward_ns     bigint   ns    operators of the forward pass
--   backward_ns    bigint   ns    operators of the backward pass
--   optimizer_ns   bigint   ns    operators of the optimizer
--   other_ns       bigint   ns    other operators: of a phase that is not known, or arithmetic on reduced gradients
--   gradients_ns   bigint   ns    operators between backward pass and optimizer, such as clipping
--   after_ns       bigint   ns    operators behind the optimizer, such as an average of the weights
--   exposed_ns     bigint   ns    exposed communication before bp_ns; all of it when bp_ns is not known
--   tail_ns        bigint   ns    exposed communication behind bp_ns
--   data_wait_ns   bigint   ns    inside the dataset iterator, while no operator and no communication ran
--   host_gap_ns    bigint   ns    the rest: Python, framework and callbacks; of a device, idle time
--   unknown_ns     bigint   ns    part of host_gap_ns that a loader may have taken which was not recorded
--   overlapped_ns  bigint   ns    communication beside other operators; inside the parts above, no part of its own
WITH recorded AS (
  SELECT
    rep, rank, step
  FROM op
  ANTI JOIN op_mark USING (rep, rank, op_id)
  WHERE step IS NOT NULL
  GROUP BY ALL
),

picked AS (
  SELECT
    rep, rank, step, train_step.kind_step, train_step.kind,
    train_step.end_ns - train_step.dur_ns AS begin_ns,
    train_step.bp_ns, train_step.called_ns, train_step.end_ns, train_step.dur_ns
  FROM train_step
  INNER JOIN recorded USING (rep, rank, step)
),

device_rank AS (
  SELECT
    rep, rank
  FROM op
  WHERE side = 'device' AND step IS NOT NULL
  GROUP BY ALL
),

-- What runs is counted in two numbers, as digits of base 2^15, so that a comparison finds the highest class that runs:
-- of operators forward, backward, optimizer, other; of the rest gradients, after, communication, fetching.
event AS (
  SELECT
    rep, rank,
    op.step,
    op.start_ns,
    op.start_ns + op.dur_ns AS stop_ns,
    coalesce(op.side, '') = 'device' AS is_device,
    CASE op_info.phase
      WHEN 'forward' THEN 35184372088832
      WHEN 'backward' THEN 1073741824
      WHEN 'optimizer' THEN 32768
      WHEN 'communication' THEN 0
      WHEN 'gradients' THEN 0
      WHEN 'after' THEN 0
      ELSE 1
    END AS operators,
    CASE op_info.phase
      WHEN 'gradients' THEN 35184372088832
      WHEN 'after' THEN 1073741824
      WHEN 'communication' THEN 32768
      ELSE 0
    END AS others
  FROM op
  LEFT JOIN op_info USING (rep, rank, op_id)
  LEFT JOIN device_rank USING (rep, rank)
  ANTI JOIN op_mark USING (rep, rank, op_id)
  WHERE op.side IS NULL OR op.side = 'device' OR device_rank.rank IS NULL
  UNION ALL
  SELECT
    rep, rank, step, start_ns,
    start_ns + dur_ns AS stop_ns,
    FALSE AS is_device,
    0 AS operators,
    32768 AS others
  FROM collective
  UNION ALL
  SELECT
    rep, rank, step, start_ns,
    start_ns + wait_ns AS stop_ns,
    FALSE AS is_device,
    0 AS operators,
    1 AS others
  FROM "fetch"
),

inside AS (
  SELECT
    rep, rank, step,
    greatest(event.start_ns, picked.begin_ns) AS from_ns,
    least(event.stop_ns, picked.end_ns) AS until_ns,
    event.operators, event.others
  FROM event
  INNER JOIN picked USING (rep, rank, step)
  WHERE
    NOT event.is_device
    AND event.stop_ns > event.start_ns AND event.start_ns < picked.end_ns AND event.stop_ns > picked.begin_ns
  UNION ALL
  SELECT
    event.rep, event.rank, picked.step,
    greatest(event.start_ns, picked.begin_ns) AS from_ns,
    least(event.stop_ns, picked.end_ns) AS until_ns,
    event.operators, event.others
  FROM event
  INNER JOIN picked
    ON
      event.rep = picked.rep AND event.rank = picked.rank
      AND event.start_ns < picked.end_ns AND event.stop_ns > picked.begin_ns
  WHERE event.is_device AND event.stop_ns > event.start_ns
),

-- What begins (or, negative, ends) at a moment. With nothing begin the step, its tail and what follows the first call,
-- so that no time is left out.
edge AS (
  SELECT
    rep, rank, step,
    from_ns AS at_ns,
    operators, others
  FROM inside
  UNION ALL
  SELECT
    rep, rank, step,
    until_ns AS at_ns,
    -operators AS operators,
    -others AS others
  FROM inside
  UNION ALL
  SELECT
    rep, rank, step,
    begin_ns AS at_ns,
    0 AS operators,
    0 AS others
  FROM picked
  UNION ALL
  SELECT
    rep, rank, step,
    greatest(bp_ns, begin_ns) AS at_ns,
    0 AS operators,
    0 AS others
  FROM picked
  WHERE bp_ns < end_ns
  UNION ALL
  SELECT
    rep, rank, step,
    greatest(called_ns, begin_ns) AS at_ns,
    0 AS operators,
    0 AS others
  FROM picked
  WHERE called_ns < end_ns
  UNION ALL
  SELECT
    rep, rank, step,
    end_ns AS at_ns,
    0 AS operators,
    0 AS others
  FROM picked
),

-- One row per moment, so that the order of the rows is complete.
moment AS (
  SELECT
    rep, rank, step, at_ns,
    CAST(sum(operators) AS BIGINT) AS operators,
    CAST(sum(others) AS BIGINT) AS others
  FROM edge
  GROUP BY ALL
),

stretch AS (
  SELECT
    rep, rank, step, at_ns,
    lead(at_ns) OVER (PARTITION BY rep, rank, step ORDER BY at_ns ASC) - at_ns AS dur_ns,
    sum(operators) OVER (PARTITION BY rep, rank, step ORDER BY at_ns ASC ROWS UNBOUNDED PRECEDING) AS operators,
    sum(others) OVER (PARTITION BY rep, rank, step ORDER BY at_ns ASC ROWS UNBOUNDED PRECEDING) AS others
  FROM moment
),

named AS (
  SELECT
    rep, rank, step,
    coalesce(stretch.dur_ns, 0) AS dur_ns,
    stretch.others - floor(stretch.others / 1073741824.0e0) * 1073741824 >= 32768
    AND (stretch.operators > 0 OR stretch.others >= 1073741824) AS overlapped,
    CASE
      WHEN stretch.operators >= 35184372088832 THEN 'forward'
      WHEN stretch.operators >= 1073741824 THEN 'backward'
      WHEN stretch.operators >= 32768 THEN 'optimizer'
      WHEN stretch.operators > 0 THEN 'other'
      WHEN stretch.others >= 35184372088832 THEN 'gradients'
      WHEN stretch.others >= 1073741824 THEN 'after'
      WHEN stretch.others >= 32768 AND stretch.at_ns >= picked.bp_ns THEN 'tail'
      WHEN stretch.others >= 32768 THEN 'exposed'
      WHEN stretch.others > 0 THEN 'data_wait'
      WHEN stretch.at_ns < picked.called_ns THEN 'unknown'
      ELSE 'host_gap'
    END AS part
  FROM stretch
  INNER JOIN picked USING (rep, rank, step)
),

summed AS (
  SELECT
    rep, rank, step,
    CAST(sum(CASE WHEN part = 'forward' THEN dur_ns ELSE 0 END) AS BIGINT) AS forward_ns,
    CAST(sum(CASE WHEN part = 'backward' THEN dur_ns ELSE 0 END) AS BIGINT) AS backward_ns,
    CAST(sum(CASE WHEN part = 'optimizer' THEN dur_ns ELSE 0 END) AS BIGINT) AS optimizer_ns,
    CAST(sum(CASE WHEN part = 'other' THEN dur_ns ELSE 0 END) AS BIGINT) AS other_ns,
    CAST(sum(CASE WHEN part = 'gradients' THEN dur_ns ELSE 0 END) AS BIGINT) AS gradients_ns,
    CAST(sum(CASE WHEN part = 'after' THEN dur_ns ELSE 0 END) AS BIGINT) AS after_ns,
    CAST(sum(CASE WHEN part = 'exposed' THEN dur_ns ELSE 0 END) AS BIGINT) AS exposed_ns,
    CAST(sum(CASE WHEN part = 'tail' THEN dur_ns ELSE 0 END) AS BIGINT) AS tail_ns,
    CAST(sum(CASE WHEN part = 'data_wait' THEN dur_ns ELSE 0 END) AS BIGINT) AS data_wait_ns,
    CAST(sum(CASE WHEN part IN ('host_gap', 'unknown') THEN dur_ns ELSE 0 END) AS BIGINT) AS host_gap_ns,
    CAST(sum(CASE WHEN part = 'unknown' THEN dur_ns ELSE 0 END) AS BIGINT) AS unknown_ns,
    CAST(sum(CASE WHEN overlapped THEN dur_ns ELSE 0 END) AS BIGINT) AS overlapped_ns
  FROM named
  GROUP BY ALL
)

SELECT
  rep, rank, step, picked.kind_step, picked.kind, picked.dur_ns, summed.forward_ns, summed.backward_ns,
  summed.optimizer_ns, summed.other_ns, summed.gradients_ns, summed.after_ns, summed.exposed_ns, summed.tail_ns,
  summed.data_wait_ns, summed.host_gap_ns, summed.unknown_ns, summed.overlapped_ns
FROM picked
INNER JOIN summed USING (rep, rank, step)

-- Shares of the training step by what it was spent on, over the steps in which operators were recorded.
--
-- The parts with adds_up add up to the step exactly; communication_overlapped lies inside them. A rank without recorded
-- operators has no rows. See the view step_part for the parts.
--
-- Reads: op?, op_info?, step_op?, step_part, train_step
-- Ranks: apart
-- Gives, one row per (rep, rank, part), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   part             varchar  after | backward | communication_exposed | communication_overlapped |
--                             communication_tail | data_wait | forward | gradients | host_gap | optimizer | other |
--                             other_loader (the host before the first call, where no batch was seen to be fetched)
--   adds_up          boolean  false for communication_overlapped
--   kind             varchar  train, or warmup when the rank has no step of kind train
--   steps            bigint   steps with recorded operators
--   total_ns         bigint   ns    time of the part in them
--   step_ns          bigint   ns    their summed time
--   median_ns        double   ns    of the part, over the steps
--   share            double   0..1  total_ns / step_ns
--   inside_work_ns   double   ns    median step without the wait for data, of steps in op windows that count; null when
--                                   there are none
--   outside_work_ns  double   ns    the same of steps outside; null when there are none
--   device_ops       bigint   executions on a device in these steps; null where the source tells none apart
--   device_op_ns     bigint   ns    their summed time; null where the source tells none apart
--   stalled          double   0..1  of computing operators' own time, what short ones (median of at most 1 ms) took in
--                                   executions of over three times that, beyond it: waiting for a core; null without
--                                   operators
WITH part_name AS (
  SELECT unnest([
    'after', 'backward', 'communication_exposed', 'communication_overlapped', 'communication_tail', 'data_wait',
    'forward', 'gradients', 'host_gap', 'optimizer', 'other', 'other_loader'
  ]) AS part
),

piece AS (
  SELECT
    step_part.rep, step_part.rank, step_part.step, step_part.kind, step_part.dur_ns, part_name.part,
    CASE part_name.part
      WHEN 'after' THEN step_part.after_ns
      WHEN 'backward' THEN step_part.backward_ns
      WHEN 'communication_exposed' THEN step_part.exposed_ns
      WHEN 'communication_overlapped' THEN step_part.overlapped_ns
      WHEN 'communication_tail' THEN step_part.tail_ns
      WHEN 'data_wait' THEN step_part.data_wait_ns
      WHEN 'forward' THEN step_part.forward_ns
      WHEN 'gradients' THEN step_part.gradients_ns
      WHEN 'host_gap' THEN step_part.host_gap_ns - step_part.unknown_ns
      WHEN 'optimizer' THEN step_part.optimizer_ns
      WHEN 'other_loader' THEN step_part.unknown_ns
      ELSE step_part.other_ns
    END AS part_ns
  FROM step_part
  INNER JOIN part_name ON step_part.dur_ns IS NOT NULL
),

device AS (
  SELECT
    rep, rank,
    count(*) AS device_ops,
    CAST(sum(op.dur_ns) AS BIGINT) AS device_op_ns
  FROM op
  INNER JOIN step_part USING (rep, rank, step)
  WHERE op.side = 'device'
  GROUP BY ALL
),

typical AS (
  SELECT
    rep, rank, op_id,
    median(own_ns) AS median_ns
  FROM step_op
  GROUP BY ALL
),

uneven AS (
  SELECT
    rep, rank,
    coalesce(
      sum(step_op.own_ns - typical.median_ns)
      FILTER (WHERE typical.median_ns <= 1e6 AND step_op.own_ns > 3 * typical.median_ns), 0
    ) / nullif(sum(step_op.own_ns), 0) AS stalled
  FROM step_op
  INNER JOIN typical USING (rep, rank, op_id)
  INNER JOIN op_info USING (rep, rank, op_id)
  WHERE op_info.phase IN ('forward', 'backward', 'other')
  GROUP BY ALL
),

work AS (
  SELECT
    rep, rank,
    median(train_step.dur_ns - coalesce(train_step.fetch_wait_ns, 0))
    FILTER (WHERE train_step.in_window AND step_part.step IS NOT NULL) AS inside_work_ns,
    median(train_step.dur_ns - coalesce(train_step.fetch_wait_ns, 0))
    FILTER (WHERE NOT train_step.in_window) AS outside_work_ns
  FROM train_step
  LEFT JOIN step_part USING (rep, rank, step)
  GROUP BY ALL
)

SELECT
  rep, rank, piece.part,
  piece.part <> 'communication_overlapped' AS adds_up,
  min(piece.kind) AS kind,
  count(*) AS steps,
  CAST(sum(piece.part_ns) AS BIGINT) AS total_ns,
  CAST(sum(piece.dur_ns) AS BIGINT) AS step_ns,
  median(piece.part_ns) AS median_ns,
  sum(piece.part_ns) / nullif(sum(piece.dur_ns), 0) AS share,
  max(work.inside_work_ns) AS inside_work_ns,
  max(work.outside_work_ns) AS outside_work_ns,
  max(device.device_ops) AS device_ops,
  max(device.device_op_ns) AS device_op_ns,
  max(uneven.stalled) AS stalled
FROM piece
INNER JOIN work USING (rep, rank)
LEFT JOIN device USING (rep, rank)
LEFT JOIN uneven USING (rep, rank)
GROUP BY rep, rank, piece.part
ORDER BY rep, rank, piece.part

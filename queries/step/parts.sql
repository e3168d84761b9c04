-- One chosen training step: when each of its parts began and ended, beside the mean of all steps of its sort.
--
-- The parts follow each other and add up to the step exactly. They are the finest that are known of the step, so that
-- another step of the same run may have others.
--
-- Reads: step
-- Takes:
--   $step  bigint  position among the rank's training steps, from 0
-- Gives, one row per (rep, rank, position), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank
--   position     bigint   order in the step, from 1
--   step         bigint   position among all steps of the rank
--   kind_step    bigint   the chosen step
--   kind         varchar  warmup | train
--   epoch        bigint   from 0; null when the source cannot tell
--   in_window    boolean  operators were being recorded, so the step time is inflated
--   start_ns     bigint   ns    start of the step
--   dur_ns       bigint   ns    the whole step
--   phase        varchar  data_wait | launch (until the first operator) | before_forward (both, not told apart) |
--                         forward | backward | forward_backward | gradients | optimizer | after | tail | compute |
--                         whole
--   from_ns      bigint   ns    the part's start, since that of the step
--   until_ns     bigint   ns    the part's end, since the start of the step
--   part_ns      bigint   ns    length of the part
--   share        double   0..1  of the step; null when that is 0
--   mean_ns      double   ns    mean length of the part in steps of the same kind with the same parts, recorded alike
--   steps        bigint   those steps
--   bp_source    varchar  how it is known when the backward pass ended, as in step; null where that divides nothing
--   bp_error_ns  bigint   ns    how far off that may be; null when it is not known
WITH known AS (
  SELECT
    rep, rank, step, kind_step, kind, epoch,
    coalesce(in_window, FALSE) AS in_window,
    start_ns, fp_ns, bp_ns, bp_source, bp_error_ns, end_ns, input_ns,
    forward_ns, backward_ns, gradients_ns, optimizer_ns, after_ns,
    CASE
      WHEN input_ns + forward_ns + backward_ns + gradients_ns + optimizer_ns + after_ns IS NOT NULL THEN 'passes'
      WHEN fp_ns < start_ns OR fp_ns > end_ns OR coalesce(fp_ns, input_ns) IS NULL THEN 'whole'
      WHEN bp_ns BETWEEN fp_ns AND end_ns AND fp_ns >= start_ns + input_ns THEN 'launched'
      WHEN bp_ns BETWEEN fp_ns AND end_ns THEN 'forward'
      WHEN start_ns + input_ns <= end_ns THEN 'fed'
      WHEN fp_ns IS NULL THEN 'whole'
      ELSE 'computed'
    END AS how
  FROM step
  WHERE kind IN ('warmup', 'train')
),

listed AS (
  SELECT
    name.place, name.phase
  FROM (
    VALUES
    (1, 'data_wait'), (2, 'before_forward'), (3, 'launch'), (4, 'forward'), (5, 'backward'), (6, 'forward_backward'),
    (7, 'gradients'), (8, 'optimizer'), (9, 'after'), (10, 'tail'), (11, 'compute'), (12, 'whole')
  ) AS name (place, phase)
),

part AS (
  SELECT
    rep, rank, step, kind_step, kind, epoch, in_window, how, start_ns, bp_source, bp_error_ns,
    end_ns - start_ns AS dur_ns,
    place, phase,
    CASE
      WHEN phase = 'data_wait' AND how IN ('passes', 'launched', 'fed') THEN input_ns
      WHEN phase = 'before_forward' AND how IN ('forward', 'computed') THEN fp_ns - start_ns
      WHEN phase = 'launch' AND how = 'launched' THEN nullif(fp_ns - start_ns - input_ns, 0)
      WHEN phase = 'forward' AND how = 'passes' THEN forward_ns
      WHEN phase = 'backward' AND how = 'passes' THEN backward_ns
      WHEN phase = 'forward_backward' AND how IN ('launched', 'forward') THEN bp_ns - fp_ns
      WHEN phase = 'gradients' AND how = 'passes' THEN gradients_ns
      WHEN phase = 'optimizer' AND how = 'passes' THEN optimizer_ns
      WHEN phase = 'after' AND how = 'passes' THEN after_ns
      WHEN phase = 'tail' AND how IN ('launched', 'forward') THEN end_ns - bp_ns
      WHEN phase = 'compute' AND how = 'fed' THEN end_ns - start_ns - input_ns
      WHEN phase = 'compute' AND how = 'computed' THEN end_ns - fp_ns
      WHEN phase = 'whole' AND how = 'whole' THEN end_ns - start_ns
    END AS part_ns
  FROM known
  INNER JOIN listed ON TRUE
),

placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank, step ORDER BY place ASC) AS position,
    CAST(
      sum(part_ns) OVER (PARTITION BY rep, rank, step ORDER BY place ASC ROWS UNBOUNDED PRECEDING) AS BIGINT
    ) AS until_ns,
    avg(part_ns) OVER (PARTITION BY rep, rank, kind, in_window, how, phase) AS mean_ns,
    count(*) OVER (PARTITION BY rep, rank, kind, in_window, how, phase) AS steps
  FROM part
  WHERE part_ns IS NOT NULL
)

SELECT
  rep, rank, position, step, kind_step, kind, epoch, in_window, start_ns, dur_ns, phase,
  until_ns - part_ns AS from_ns,
  until_ns, part_ns,
  part_ns / nullif(dur_ns, 0) AS share,
  mean_ns, steps,
  CASE WHEN how IN ('launched', 'forward') THEN bp_source END AS bp_source,
  CASE WHEN how IN ('launched', 'forward') THEN bp_error_ns END AS bp_error_ns
FROM placed
WHERE kind_step = $step
ORDER BY rep, rank, position

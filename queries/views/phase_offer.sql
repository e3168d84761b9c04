-- How long each phase of a step took on each rank, from every source that there is; rank_phase takes the best of them.
--
-- Reads: comm_part?, rank_split?, step_part?, train_step?
-- Gives, one row per (rep, rank, position, source, phase):
--   source      varchar  parts | split | trace | phase, see rank_phase
--   preference  integer  1 tells most
--   rep         bigint   repetition
--   rank        bigint   process rank
--   position    bigint   the step's number in the source, else among the rank's training steps
--   phase       varchar  see rank_phase
--   phase_ns    bigint   ns  its length
--   step_ns     bigint   ns  length of the step
WITH phase_name AS (
  SELECT unnest([
    'own', 'until_bp', 'step', 'communication', 'data_wait', 'forward', 'backward', 'optimizer', 'other',
    'host_gap', 'computing', 'free', 'forward_backward', 'tail', 'compute'
  ]) AS phase
),

offer AS (
  SELECT
    'parts' AS source,
    1 AS preference,
    step_part.rep, step_part.rank,
    train_step.position, phase_name.phase,
    CASE phase_name.phase
      WHEN 'own' THEN step_part.dur_ns - step_part.exposed_ns - step_part.tail_ns
      WHEN 'step' THEN step_part.dur_ns
      WHEN 'communication' THEN step_part.exposed_ns + step_part.tail_ns
      WHEN 'data_wait' THEN step_part.data_wait_ns
      WHEN 'forward' THEN step_part.forward_ns
      WHEN 'backward' THEN step_part.backward_ns
      WHEN 'optimizer' THEN step_part.optimizer_ns
      WHEN 'other' THEN step_part.other_ns + step_part.gradients_ns + step_part.after_ns
      WHEN 'host_gap' THEN step_part.host_gap_ns
    END AS phase_ns,
    step_part.dur_ns AS step_ns
  FROM step_part
  INNER JOIN train_step USING (rep, rank, step)
  INNER JOIN phase_name ON step_part.dur_ns IS NOT NULL
  UNION ALL
  SELECT
    'split' AS source,
    2 AS preference,
    rank_split.rep, rank_split.rank, rank_split.position, phase_name.phase,
    CASE phase_name.phase
      WHEN 'own' THEN rank_split.computing_ns + coalesce(rank_split.free_ns, 0)
      WHEN 'communication' THEN rank_split.exposed_ns
      WHEN 'computing' THEN rank_split.computing_ns
      WHEN 'free' THEN rank_split.free_ns
    END AS phase_ns,
    rank_split.step_ns
  FROM rank_split
  INNER JOIN phase_name ON rank_split.step_ns IS NOT NULL
  UNION ALL
  SELECT
    'trace' AS source,
    3 AS preference,
    comm_part.rep, comm_part.rank, comm_part.position, phase_name.phase,
    CASE phase_name.phase
      WHEN 'own' THEN comm_part.dur_ns - comm_part.comm_ns
      WHEN 'until_bp' THEN comm_part.data_wait_ns + comm_part.forward_backward_ns
      WHEN 'step' THEN comm_part.dur_ns
      WHEN 'communication' THEN comm_part.comm_ns
      WHEN 'data_wait' THEN comm_part.data_wait_ns - comm_part.data_wait_comm_ns
      WHEN 'forward_backward' THEN comm_part.forward_backward_ns - comm_part.forward_backward_comm_ns
      WHEN 'tail' THEN comm_part.tail_ns - comm_part.tail_comm_ns
    END AS phase_ns,
    comm_part.dur_ns AS step_ns
  FROM comm_part
  INNER JOIN phase_name ON comm_part.dur_ns IS NOT NULL
  UNION ALL
  SELECT
    'phase' AS source,
    4 AS preference,
    train_step.rep, train_step.rank, train_step.position, phase_name.phase,
    CASE phase_name.phase
      WHEN 'until_bp' THEN CASE WHEN train_step.fp_ns IS NOT NULL THEN train_step.bp_ns - train_step.start_ns END
      WHEN 'step' THEN train_step.dur_ns
      WHEN 'data_wait' THEN train_step.fp_ns - train_step.start_ns
      WHEN 'compute' THEN CASE WHEN train_step.bp_ns IS NULL THEN train_step.end_ns - train_step.fp_ns END
      WHEN 'forward_backward' THEN train_step.bp_ns - train_step.fp_ns
      WHEN 'tail' THEN CASE WHEN train_step.fp_ns IS NOT NULL THEN train_step.end_ns - train_step.bp_ns END
    END AS phase_ns,
    train_step.dur_ns AS step_ns
  FROM train_step
  INNER JOIN phase_name ON train_step.timed
)

SELECT
  source, preference, rep, rank, position, phase, phase_ns, step_ns
FROM offer
WHERE phase_ns IS NOT NULL

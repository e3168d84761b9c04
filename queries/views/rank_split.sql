-- Rows of step_split that stand for a rank's own steps: without rows of whole stages, and without the first step when
-- it is warm-up and there are others.
--
-- Reads: step?, step_split
-- Gives, one row per (rep, rank, position):
--   rep               bigint   repetition
--   rank              bigint   process rank
--   source            varchar  kind of file: step_trace_time | cluster_step_trace | cluster_analyse
--   position          bigint   the step's number in the source; 0 for the whole run
--   computing_ns      bigint   ns    device computing
--   communication_ns  bigint   ns    all communication
--   overlapped_ns     bigint   ns    communication beside computing
--   exposed_ns        bigint   ns    communication that is not overlapped
--   receive_ns        bigint   ns    of it, receiving from another stage
--   free_ns           bigint   ns    neither computing nor communication
--   stage_ns          bigint   ns    the step without waiting for other pipeline stages
--   bubble_ns         bigint   ns    waiting for other pipeline stages
--   preparing_ns      bigint   ns    host time before the first device task
--   step_ns           bigint   ns    computing, exposed and free together
WITH rated AS (
  SELECT
    rep, rank, step_split.source, step_split.source_step, step_split.computing_ns, step_split.communication_ns,
    step_split.overlapped_ns, step_split.exposed_ns, step_split.exposed_without_receive_ns, step_split.receive_ns,
    step_split.free_ns, step_split.stage_ns, step_split.bubble_ns, step_split.preparing_ns,
    CASE WHEN step.kind = 'warmup' THEN 1 ELSE 0 END AS warm
  FROM step_split
  LEFT JOIN step USING (rep, rank, step)
  WHERE step_split.stage_index IS NULL
)

SELECT
  rep, rank, source,
  coalesce(source_step, 0) AS position,
  computing_ns,
  coalesce(communication_ns, overlapped_ns + exposed_ns) AS communication_ns,
  overlapped_ns, exposed_ns,
  coalesce(receive_ns, exposed_ns - exposed_without_receive_ns) AS receive_ns,
  free_ns, stage_ns, bubble_ns, preparing_ns,
  computing_ns + exposed_ns + coalesce(free_ns, 0) AS step_ns
FROM rated
QUALIFY
  warm = min(warm) OVER (PARTITION BY rep, rank, source)
  AND source = max(source) OVER (PARTITION BY rep, rank)

-- What questions over many runs ask of each rank: steps, waiting for data, phases, communication, memory, whole run.
--
-- The numbers are those of step/summary, step/data_wait, step/phase_summary, comm/split (the most exact source that a
-- rank has), host/memory_peak and run/account.
--
-- Reads: comm_part?, memory?, op_info?, pipeline?, rank_split?, run_part?, step?, step_part?, train_phase?, train_step?
-- Gives, one row per (rep, rank), in that order:
--   rep                        bigint   repetition
--   rank                       bigint   process rank
--   kind                       varchar  of the steps that count: train, or warmup when it has no others
--   steps                      bigint   training steps, warm-up included
--   timed_steps                bigint   those that count for the next three
--   median_ns                  double   ns    median step
--   p90_ns                     double   ns    90th percentile of the steps, interpolated
--   data_wait_share            double   0..1  of the time of these steps, inside the dataset iterator
--   training_ns                bigint   ns    all training steps together
--   wait_ns                    bigint   ns    of that, inside the dataset iterator; null when no step fetched a batch
--   phase_data_wait_ns         double   ns    median of the phase before the forward pass
--   phase_compute_ns           double   ns    median of the phases behind it
--   phase_forward_backward_ns  double   ns    median of forward and backward pass, where operators were recorded
--   phase_tail_ns              double   ns    median of the phase behind them
--   comm_share                 double   0..1  of a step, communication; null when not recorded
--   exposed_share              double   0..1  of a step, communication with nothing beside it; null when not known
--   rss_bytes                  bigint   bytes  largest resident set of a process
--   pool_bytes                 bigint   bytes  most that a pool of the framework held
--   run_ns                     bigint   ns    the whole run, of which the following are parts
--   start_ns                   bigint   ns    start-up: interpreter, imports, set-up, building the dataset
--   compile_ns                 bigint   ns    compiling graphs, also again
--   evaluation_ns              bigint   ns    evaluations
--   checkpoint_ns              bigint   ns    checkpoints
--   callback_ns                bigint   ns    other callbacks
WITH place AS (
  SELECT DISTINCT rep, rank FROM step
  UNION
  SELECT DISTINCT rep, rank FROM run_part
  UNION
  SELECT DISTINCT rep, rank FROM rank_split
  UNION
  SELECT DISTINCT rep, rank FROM memory
  UNION
  SELECT DISTINCT rep, rank FROM op_info
  UNION
  SELECT DISTINCT rep, rank FROM pipeline
),

pace AS (
  SELECT
    rep, rank,
    min(kind) AS kind,
    count(*) AS timed_steps,
    median(dur_ns) AS median_ns,
    percentile_cont(0.9e0) WITHIN GROUP (ORDER BY dur_ns) AS p90_ns,
    sum(fetch_wait_ns) / nullif(sum(dur_ns), 0) AS data_wait_share
  FROM train_step
  WHERE timed
  GROUP BY ALL
),

whole AS (
  SELECT
    rep, rank,
    count(*) AS steps,
    CAST(sum(end_ns - start_ns) AS BIGINT) AS training_ns,
    CAST(sum(fetch_wait_ns) AS BIGINT) AS wait_ns
  FROM step
  WHERE kind IN ('train', 'warmup')
  GROUP BY ALL
),

phase AS (
  SELECT
    rep, rank,
    median(total_ns) FILTER (WHERE phase = 'data_wait') AS phase_data_wait_ns,
    median(total_ns) FILTER (WHERE phase = 'compute') AS phase_compute_ns,
    median(total_ns) FILTER (WHERE phase = 'forward_backward') AS phase_forward_backward_ns,
    median(total_ns) FILTER (WHERE phase = 'tail') AS phase_tail_ns
  FROM train_phase
  GROUP BY ALL
),

piece AS (
  SELECT
    rep, rank,
    1 AS preference,
    dur_ns AS step_ns,
    exposed_ns + tail_ns + overlapped_ns AS comm_ns,
    exposed_ns + tail_ns AS exposed_ns
  FROM step_part
  UNION ALL
  SELECT
    rep, rank,
    2 AS preference,
    step_ns,
    communication_ns AS comm_ns,
    exposed_ns
  FROM rank_split
  UNION ALL BY NAME
  SELECT
    rep, rank,
    3 AS preference,
    dur_ns AS step_ns,
    comm_ns
  FROM comm_part
),

comm AS (
  SELECT
    rep, rank,
    sum(comm_ns) / nullif(sum(step_ns), 0) AS comm_share,
    sum(exposed_ns) / nullif(sum(step_ns), 0) AS exposed_share
  FROM piece
  WHERE comm_ns IS NOT NULL OR exposed_ns IS NOT NULL
  GROUP BY rep, rank, preference
  QUALIFY row_number() OVER (PARTITION BY rep, rank ORDER BY preference ASC) = 1
),

peak AS (
  SELECT
    rep, rank,
    max(coalesce(greatest(rss_bytes, rss_peak_bytes), rss_bytes, rss_peak_bytes)) FILTER (WHERE device = 'process')
      AS rss_bytes,
    max(coalesce(reserved_bytes, allocated_bytes)) FILTER (WHERE device NOT IN ('process', 'host')) AS pool_bytes
  FROM memory
  GROUP BY ALL
),

account AS (
  SELECT
    rep, rank,
    CAST(sum(dur_ns) AS BIGINT) AS run_ns,
    CAST(coalesce(sum(dur_ns) FILTER (WHERE part IN ('start', 'import', 'set_up', 'dataset_build')), 0) AS BIGINT)
      AS start_ns,
    CAST(coalesce(sum(dur_ns) FILTER (WHERE part IN ('compile', 'recompile', 'compile_eval')), 0) AS BIGINT)
      AS compile_ns,
    CAST(coalesce(sum(dur_ns) FILTER (WHERE part = 'evaluation'), 0) AS BIGINT) AS evaluation_ns,
    CAST(coalesce(sum(dur_ns) FILTER (WHERE part = 'checkpoint'), 0) AS BIGINT) AS checkpoint_ns,
    CAST(coalesce(sum(dur_ns) FILTER (WHERE part = 'callback'), 0) AS BIGINT) AS callback_ns
  FROM run_part
  WHERE dur_ns IS NOT NULL
  GROUP BY ALL
)

SELECT
  rep, rank, pace.kind, whole.steps, pace.timed_steps, pace.median_ns, pace.p90_ns, pace.data_wait_share,
  whole.training_ns, whole.wait_ns, phase.phase_data_wait_ns, phase.phase_compute_ns, phase.phase_forward_backward_ns,
  phase.phase_tail_ns,
  comm.comm_share, comm.exposed_share, peak.rss_bytes, peak.pool_bytes, account.run_ns, account.start_ns,
  account.compile_ns, account.evaluation_ns, account.checkpoint_ns, account.callback_ns
FROM place
LEFT JOIN pace USING (rep, rank)
LEFT JOIN whole USING (rep, rank)
LEFT JOIN phase USING (rep, rank)
LEFT JOIN comm USING (rep, rank)
LEFT JOIN peak USING (rep, rank)
LEFT JOIN account USING (rep, rank)
ORDER BY rep, rank

-- What a batch costs each operator of the training pipelines: summed time of its workers, in the steady state.
--
-- From two sources. MindSpore's timing lines (log) hold everything the operator does, but only for the first batches
-- of some loops. Timed calls (hook) hold the user's Python alone, in every loop and to the end. With both, the cost is
-- that of the calls, plus what the lines had above them while there were lines. Of each source and tree the first
-- quarter is left out. Several sizes of a row's work are averaged with the rows as weights.
--
-- Reads: op_service, pipeline_window
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep              bigint   repetition
--   rank             bigint   process rank
--   pipeline_key     varchar  equal keys are the same pipeline again
--   op_id            bigint   operator
--   source           varchar  log | hook | both
--   batches          bigint   batches the figures are from
--   rows_per_batch   double   rows it worked on for one batch
--   log_work_ns      double   ns    per batch, by the timing lines; null without
--   hook_work_ns     double   ns    per batch, by the timed calls; null without
--   work_ns          double   ns    per batch, see above
--   hook_row_ns      double   ns    one row in one worker, by the timed calls; null without
--   cpu_share        double   0..1  part of the calls' time in which their thread computed; null without calls
--   work_cv          double   standard deviation / mean of the batches' work, by the timing lines; null without
--   longest_batches  double   mean of the intervals' longest call, in batches' work; null without calls
--   longest_ns       double   ns    mean of the intervals' or batches' longest row
--   burst_share      double   0..1  intervals where one call took 15 times the mean and 5 % of the time; null without
WITH numbered AS (
  SELECT
    op_service.rep,
    op_service.rank,
    pipeline_window.pipeline_key,
    op_service.pipeline_id,
    op_service.op_id,
    op_service.source,
    op_service.t_ns,
    op_service.avg_ns,
    op_service.cpu_ns,
    coalesce(op_service.max_ns, op_service.avg_ns) AS max_ns,
    op_service.rows,
    coalesce(op_service.batches, 1) AS batches,
    CAST(op_service.avg_ns AS DOUBLE) * op_service.rows AS work_ns,
    row_number() OVER (
      PARTITION BY op_service.rep, op_service.rank, op_service.pipeline_id, op_service.op_id, op_service.source
      ORDER BY
        op_service.t_ns, op_service.avg_ns, op_service.rows, op_service.max_ns, op_service.cpu_ns, op_service.batches
    ) AS position,
    count(*) OVER (
      PARTITION BY op_service.rep, op_service.rank, op_service.pipeline_id, op_service.op_id, op_service.source
    ) AS positions,
    max(CASE WHEN op_service.source = 'log' THEN op_service.t_ns END) OVER (
      PARTITION BY op_service.rep, op_service.rank, op_service.pipeline_id, op_service.op_id
    ) AS last_log_ns
  FROM op_service
  INNER JOIN pipeline_window
    ON
      op_service.rep = pipeline_window.rep
      AND op_service.rank = pipeline_window.rank
      AND op_service.pipeline_id = pipeline_window.pipeline_id
  WHERE pipeline_window.role = 'train' AND op_service.avg_ns IS NOT NULL AND op_service.rows > 0
),

summed AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    op_id,
    source,
    CAST(sum(batches) AS BIGINT) AS batches,
    sum(work_ns) / nullif(sum(batches), 0) AS batch_work_ns,
    sum(work_ns) / nullif(sum(rows), 0) AS row_ns,
    sum(rows) / nullif(sum(batches), 0) AS rows_per_batch,
    sum(CAST(cpu_ns AS DOUBLE) * rows) / nullif(sum(work_ns) FILTER (WHERE cpu_ns IS NOT NULL), 0) AS cpu_share,
    stddev_samp(work_ns) / nullif(avg(work_ns), 0) AS work_cv,
    avg(max_ns) AS longest_ns,
    avg(CASE WHEN max_ns >= 15.0e0 * avg_ns AND max_ns >= 0.05e0 * work_ns THEN 1.0e0 ELSE 0.0e0 END) AS burst_share
  FROM numbered
  WHERE position > 0.25e0 * positions OR positions < 3
  GROUP BY rep, rank, pipeline_key, op_id, source
),

-- The calls of the time when there were lines: what the lines hold above them is not the user's Python.
early AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    op_id,
    sum(work_ns) / nullif(sum(rows), 0) AS row_ns
  FROM numbered
  WHERE source = 'hook' AND (t_ns <= last_log_ns OR position = 1)
  GROUP BY rep, rank, pipeline_key, op_id
),

paired AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    op_id,
    min(source) AS first_source,
    max(source) AS last_source,
    max(batches) FILTER (WHERE source = 'log') AS log_batches,
    max(batches) FILTER (WHERE source = 'hook') AS hook_batches,
    max(rows_per_batch) FILTER (WHERE source = 'log') AS log_rows,
    max(rows_per_batch) FILTER (WHERE source = 'hook') AS hook_rows,
    max(batch_work_ns) FILTER (WHERE source = 'log') AS log_work_ns,
    max(row_ns) FILTER (WHERE source = 'log') AS log_row_ns,
    max(row_ns) FILTER (WHERE source = 'hook') AS hook_row_ns,
    max(cpu_share) FILTER (WHERE source = 'hook') AS cpu_share,
    max(work_cv) FILTER (WHERE source = 'log') AS work_cv,
    max(longest_ns) FILTER (WHERE source = 'log') AS log_longest_ns,
    max(longest_ns) FILTER (WHERE source = 'hook') AS hook_longest_ns,
    max(burst_share) FILTER (WHERE source = 'hook') AS burst_share
  FROM summed
  GROUP BY rep, rank, pipeline_key, op_id
),

-- A timing line counts the rows of its batch. Calls run ahead of the batches by what fits into the queues, which
-- matters in a short run; only where rows are thrown away later are there clearly more calls than a line counts.
counted AS (
  SELECT
    *,
    CASE WHEN hook_rows >= 1.35e0 * log_rows THEN hook_rows ELSE coalesce(log_rows, hook_rows) END AS rows_per_batch
  FROM paired
)

SELECT
  counted.rep,
  counted.rank,
  counted.pipeline_key,
  counted.op_id,
  CASE WHEN counted.first_source = counted.last_source THEN counted.first_source ELSE 'both' END AS source,
  coalesce(counted.hook_batches, counted.log_batches) AS batches,
  counted.rows_per_batch,
  counted.log_work_ns,
  counted.hook_row_ns * counted.rows_per_batch AS hook_work_ns,
  coalesce(
    (counted.hook_row_ns + greatest(coalesce(counted.log_row_ns - early.row_ns, 0.0e0), 0.0e0))
    * counted.rows_per_batch,
    counted.log_work_ns
  ) AS work_ns,
  counted.hook_row_ns,
  CASE WHEN counted.cpu_share > 1.0e0 THEN 1.0e0 ELSE counted.cpu_share END AS cpu_share,
  counted.work_cv,
  counted.hook_longest_ns / nullif(counted.hook_row_ns * counted.rows_per_batch, 0) AS longest_batches,
  coalesce(counted.hook_longest_ns, counted.log_longest_ns) AS longest_ns,
  counted.burst_share
FROM counted
LEFT JOIN early
  ON
    counted.rep = early.rep
    AND counted.rank = early.rank
    AND counted.pipeline_key = early.pipeline_key
    AND counted.op_id = early.op_id

-- What a batch costs each operator of the dataset pipelines: summed time of its workers, in the steady state.
--
-- From two sources. MindSpore's timing lines (log) hold everything the operator does, but only for the first batches
-- of some loops. Timed calls (hook) hold the user's Python alone, in every loop and to the end. With both, the cost is
-- that of the calls, plus what the lines had above them while there were lines; of a Python source with several
-- workers the lines are of its output, so there the calls count alone. Of each source and tree the first quarter is
-- left out. Several sizes of a row's work are averaged with the rows as weights.
--
-- Calls run ahead of the loop by what fits into the queues: in a short run that is several times what its batches
-- need. Where no line counts the rows of a batch, and every operator between this one and the loop hands on what it
-- gets, a batch takes as many rows as the batch operator says. Calls after the last batch are of none: behind a loop
-- that ends early MindSpore works off the rest of the epoch.
--
-- Reads: op_service, pipeline?, pipeline_below?, pipeline_tree?, pipeline_window
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep              bigint   repetition
--   rank             bigint   process rank
--   pipeline_key     varchar  equal keys are the same pipeline again
--   op_id            bigint   operator
--   source           varchar  log | hook | both
--   batches          bigint   batches the figures are from
--   rows             bigint   rows worked on for them
--   rows_per_batch   double   rows it worked on for one batch
--   log_work_ns      double   ns    per batch, by the timing lines; null without
--   hook_work_ns     double   ns    per batch, by the timed calls; null without
--   work_ns          double   ns    per batch, see above
--   row_work_ns      double   ns    one row in one worker: work_ns / rows_per_batch
--   p90_row_ns       double   ns    90th percentile of the batches' or intervals' mean rows, interpolated
--   max_row_ns       bigint   ns    longest single row
--   io_share         double   0..1  part of the time spent reading; null when the operator does not say
--   hook_row_ns      double   ns    one row in one worker, by the timed calls; null without
--   hook_cpu_ns      double   ns    CPU time per batch, by the timed calls; null without
--   cpu_share        double   0..1  part of the calls' time in which their worker computed; time in which it was ready
--                                   to run but had no core is left out where it is known; null without calls
--   call_cores       double   cores  that a call keeps busy while it runs: threads of libraries; null without calls
--   work_cv          double   standard deviation / mean of the batches' work, by the timing lines; null without
--   longest_batches  double   mean of the intervals' longest call, in batches' work; null without calls
--   longest_ns       double   ns    mean of the intervals' or batches' longest row
--   burst_share      double   0..1  intervals where one call took 15 times the mean and 5 % of the time; null without
WITH placed AS (
  SELECT
    op_service.*,
    pipeline_window.pipeline_key,
    count(CASE WHEN op_service.t_ns <= pipeline_window.to_ns THEN 1 END) OVER (
      PARTITION BY rep, rank, pipeline_id, op_service.op_id, op_service.source
    ) AS in_time
  FROM op_service
  INNER JOIN pipeline_window USING (rep, rank, pipeline_id)
  WHERE op_service.avg_ns IS NOT NULL AND op_service.rows > 0
  QUALIFY op_service.source <> 'hook' OR op_service.t_ns <= pipeline_window.to_ns OR in_time < 3
),

numbered AS (
  SELECT
    rep, rank, op_service.pipeline_key, pipeline_id, op_service.op_id, op_service.source, op_service.t_ns,
    op_service.avg_ns, op_service.cpu_ns,
    greatest(op_service.avg_ns - coalesce(op_service.delay_ns, 0), 0) AS undelayed_ns,
    op_service.io_ns,
    coalesce(op_service.max_ns, op_service.avg_ns) AS max_ns,
    op_service.rows,
    coalesce(op_service.batches, 1) AS batches,
    CAST(op_service.avg_ns AS DOUBLE) * op_service.rows AS work_ns,
    row_number() OVER (
      PARTITION BY rep, rank, pipeline_id, op_service.op_id, op_service.source
      ORDER BY
        op_service.t_ns, op_service.avg_ns, op_service.rows, op_service.max_ns, op_service.cpu_ns, op_service.batches
    ) AS position,
    count(*) OVER (
      PARTITION BY rep, rank, pipeline_id, op_service.op_id, op_service.source
    ) AS positions,
    max(CASE WHEN op_service.source = 'log' THEN op_service.t_ns END) OVER (
      PARTITION BY rep, rank, pipeline_id, op_service.op_id
    ) AS last_log_ns
  FROM placed AS op_service
),

summed AS (
  SELECT
    rep, rank, pipeline_key, op_id, source,
    CAST(sum(batches) AS BIGINT) AS batches,
    CAST(sum(rows) AS BIGINT) AS rows,
    sum(work_ns) / nullif(sum(batches), 0) AS batch_work_ns,
    sum(work_ns) / nullif(sum(rows), 0) AS row_ns,
    sum(rows) / nullif(sum(batches), 0) AS rows_per_batch,
    sum(CAST(cpu_ns AS DOUBLE) * rows)
    / nullif(sum(CAST(undelayed_ns AS DOUBLE) * rows) FILTER (WHERE cpu_ns IS NOT NULL), 0) AS cpu_share,
    sum(CAST(cpu_ns AS DOUBLE) * rows) / nullif(sum(rows) FILTER (WHERE cpu_ns IS NOT NULL), 0) AS row_cpu_ns,
    stddev_samp(work_ns) / nullif(avg(work_ns), 0) AS work_cv,
    avg(max_ns) AS longest_ns,
    max(max_ns) AS max_row_ns,
    percentile_cont(0.9e0) WITHIN GROUP (ORDER BY avg_ns) AS p90_row_ns,
    sum(CAST(io_ns AS DOUBLE) * rows) / nullif(sum(work_ns) FILTER (WHERE io_ns IS NOT NULL), 0) AS io_share,
    avg(CASE WHEN max_ns >= 15.0e0 * avg_ns AND max_ns >= 0.05e0 * work_ns THEN 1.0e0 ELSE 0.0e0 END) AS burst_share
  FROM numbered
  WHERE position > 0.25e0 * positions OR positions < 3
  GROUP BY rep, rank, pipeline_key, op_id, source
),

-- The calls of the time when there were lines: what the lines hold above them is not the user's Python.
early AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    sum(work_ns) / nullif(sum(rows), 0) AS row_ns
  FROM numbered
  WHERE source = 'hook' AND (t_ns <= last_log_ns OR position = 1)
  GROUP BY ALL
),

paired AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    min(source) AS first_source,
    max(source) AS last_source,
    max(batches) FILTER (WHERE source = 'log') AS log_batches,
    max(batches) FILTER (WHERE source = 'hook') AS hook_batches,
    max(rows) FILTER (WHERE source = 'log') AS log_rows,
    max(rows) FILTER (WHERE source = 'hook') AS hook_rows,
    max(rows_per_batch) FILTER (WHERE source = 'log') AS log_rows_per_batch,
    max(rows_per_batch) FILTER (WHERE source = 'hook') AS hook_rows_per_batch,
    max(batch_work_ns) FILTER (WHERE source = 'log') AS log_work_ns,
    max(row_ns) FILTER (WHERE source = 'log') AS log_row_ns,
    max(row_ns) FILTER (WHERE source = 'hook') AS hook_row_ns,
    max(cpu_share) FILTER (WHERE source = 'hook') AS cpu_share,
    max(row_cpu_ns) FILTER (WHERE source = 'hook') AS row_cpu_ns,
    max(work_cv) FILTER (WHERE source = 'log') AS work_cv,
    max(longest_ns) FILTER (WHERE source = 'log') AS log_longest_ns,
    max(longest_ns) FILTER (WHERE source = 'hook') AS hook_longest_ns,
    max(max_row_ns) FILTER (WHERE source = 'log') AS log_max_row_ns,
    max(max_row_ns) FILTER (WHERE source = 'hook') AS hook_max_row_ns,
    max(p90_row_ns) FILTER (WHERE source = 'log') AS log_p90_row_ns,
    max(p90_row_ns) FILTER (WHERE source = 'hook') AS hook_p90_row_ns,
    max(io_share) AS io_share,
    max(burst_share) FILTER (WHERE source = 'hook') AS burst_share
  FROM summed
  GROUP BY ALL
),

operator AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    bool_or(op_type = 'GeneratorOp' AND workers > 1) AS has_master
  FROM pipeline_tree
  GROUP BY ALL
),

-- Rows that one batch takes, by the graph alone.
told AS (
  SELECT
    rep, rank, pipeline_tree.pipeline_key, pipeline_tree.op_id, CASE
      WHEN min(pipeline.batch_size) IS NULL THEN NULL
      WHEN count(CASE WHEN pipeline_below.consumer_type = 'BatchOp' THEN 1 END) = 0 THEN 1
      WHEN
        count(CASE WHEN pipeline_below.consumer_type = 'BatchOp' THEN 1 END)
        = count(DISTINCT pipeline_id)
        THEN min(pipeline.batch_size)
    END AS rows_per_batch
  FROM pipeline_tree
  INNER JOIN pipeline USING (rep, rank, pipeline_id)
  LEFT JOIN pipeline_below USING (rep, rank, pipeline_id, op_id)
  GROUP BY ALL
  HAVING
    coalesce(bool_and(pipeline_below.consumer_type IN (
      'BatchOp', 'DataQueueOp', 'DeviceQueueOp', 'EpochCtrlOp', 'MapOp', 'ProjectOp', 'RenameOp', 'RepeatOp', 'RootOp',
      'ShuffleOp', 'ZipOp'
    )), TRUE)
),

-- A timing line counts the rows of its batch. Calls run ahead of the batches by what fits into the queues, which
-- matters in a short run; only where rows are thrown away later are there clearly more calls than a line counts.
counted AS (
  SELECT
    paired.*,
    CASE
      WHEN paired.hook_rows_per_batch >= 1.35e0 * paired.log_rows_per_batch THEN paired.hook_rows_per_batch
      ELSE coalesce(paired.log_rows_per_batch, told.rows_per_batch, paired.hook_rows_per_batch)
    END AS rows_per_batch,
    -- What one row takes besides the user's Python.
    CASE
      WHEN coalesce(operator.has_master, FALSE) THEN 0.0e0
      ELSE greatest(coalesce(paired.log_row_ns - early.row_ns, 0.0e0), 0.0e0)
    END AS beside_ns
  FROM paired
  LEFT JOIN early USING (rep, rank, pipeline_key, op_id)
  LEFT JOIN told USING (rep, rank, pipeline_key, op_id)
  LEFT JOIN operator USING (rep, rank, pipeline_key, op_id)
)

SELECT
  rep, rank, pipeline_key, op_id,
  CASE WHEN first_source = last_source THEN first_source ELSE 'both' END AS source,
  coalesce(hook_batches, log_batches) AS batches,
  coalesce(hook_rows, log_rows) AS rows,
  rows_per_batch, log_work_ns,
  hook_row_ns * rows_per_batch AS hook_work_ns,
  coalesce((hook_row_ns + beside_ns) * rows_per_batch, log_work_ns) AS work_ns,
  coalesce(hook_row_ns + beside_ns, log_row_ns) AS row_work_ns,
  coalesce(hook_p90_row_ns + beside_ns, log_p90_row_ns) AS p90_row_ns,
  coalesce(hook_max_row_ns, log_max_row_ns) AS max_row_ns,
  io_share, hook_row_ns,
  row_cpu_ns * rows_per_batch AS hook_cpu_ns,
  CASE WHEN cpu_share > 1.0e0 THEN 1.0e0 ELSE cpu_share END AS cpu_share,
  cpu_share AS call_cores,
  work_cv,
  hook_longest_ns / nullif(hook_row_ns * rows_per_batch, 0) AS longest_batches,
  coalesce(hook_longest_ns, log_longest_ns) AS longest_ns,
  burst_share
FROM counted

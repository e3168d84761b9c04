-- What the operators of the training pipelines read, how large their rows are and how many an epoch has.
--
-- Of timed calls wait_share is the part in which the caller waited: for a file, say. Time in which it was ready to run
-- but had no core is left out of both sides. Native sources say themselves how long they read. What was timed before
-- the steady state counts only where nothing else was.
--
-- Reads: fetch?, load_op, load_service?, op_service?, pipeline?, pipeline_op, pipeline_tree, pipeline_window?
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key, op_id), in that order:
--   rep             bigint   repetition
--   rank            bigint   process rank
--   pipeline_key    varchar  equal keys are the same pipeline again
--   op_id           bigint   operator
--   op_type         varchar  such as MapOp
--   consumer_id     bigint   op_id of its consumer, of several the lowest; null at the sink
--   producers       bigint   how many operators feed it: 0 of a source
--   rows_per_batch  double   rows it worked on for one batch; null when not measured
--   wait_share      double   0..1  part of a row's time that it waited; null when not measured
--   read_bytes      double   bytes  that a row's calls read from files; null when not known
--   in_bytes        double   bytes  that a row's calls were given; null when not known
--   out_bytes       double   bytes  that a row's calls returned; null when not known
--   source_rows     bigint   rows  that a Python source says it has; null when it does not
--   epoch_batches   bigint   batches of a whole epoch; null when none was seen to its end
--   batch_bytes     bigint   bytes  of the first batch; null when not known
--   hand_over_ns    bigint   ns  shortest wait for a batch with more behind it; null with fewer than 5 of these
WITH called AS (
  SELECT
    rep, rank, pipeline_window.pipeline_key, op_service.op_id, op_service.rows, op_service.read_bytes,
    op_service.in_bytes, op_service.out_bytes, op_service.avg_ns, op_service.cpu_ns, op_service.delay_ns,
    bool_or(op_service.t_ns >= pipeline_window.from_ns) OVER (
      PARTITION BY rep, rank, pipeline_window.pipeline_key, op_service.op_id
    ) AND op_service.t_ns < pipeline_window.from_ns AS is_early
  FROM op_service
  INNER JOIN pipeline_window USING (rep, rank, pipeline_id)
  WHERE op_service.source = 'hook' AND op_service.rows > 0 AND op_service.avg_ns IS NOT NULL
),

measured AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    sum(CAST(greatest(avg_ns - cpu_ns - coalesce(delay_ns, 0), 0) AS DOUBLE) * rows)
    / nullif(
      sum(CAST(greatest(avg_ns - coalesce(delay_ns, 0), cpu_ns) AS DOUBLE) * rows) FILTER (WHERE cpu_ns IS NOT NULL), 0
    ) AS wait_share,
    sum(CAST(read_bytes AS DOUBLE) * rows) / nullif(sum(rows) FILTER (WHERE read_bytes IS NOT NULL), 0) AS read_bytes,
    sum(CAST(in_bytes AS DOUBLE) * rows) / nullif(sum(rows) FILTER (WHERE in_bytes IS NOT NULL), 0) AS in_bytes,
    sum(CAST(out_bytes AS DOUBLE) * rows) / nullif(sum(rows) FILTER (WHERE out_bytes IS NOT NULL), 0) AS out_bytes
  FROM called
  WHERE NOT is_early
  GROUP BY ALL
),

handed AS (
  SELECT
    rep, rank, pipeline_window.pipeline_key,
    min(fetched.wait_ns) AS hand_over_ns
  FROM "fetch" AS fetched
  INNER JOIN pipeline_window USING (rep, rank, pipeline_id)
  WHERE fetched.depth > 0 AND fetched.start_ns >= pipeline_window.from_ns
  GROUP BY ALL
  HAVING count(*) >= 5
),

epoch AS (
  SELECT
    rep, rank, pipeline_key,
    max(epoch_batches) AS epoch_batches,
    max(batch_bytes) AS batch_bytes
  FROM pipeline
  GROUP BY ALL
),

feeding AS (
  SELECT
    rep, rank, pipeline_id,
    consumer_id AS op_id,
    count(*) AS producers
  FROM pipeline_tree
  WHERE consumer_id IS NOT NULL
  GROUP BY ALL
)

SELECT
  load_op.rep, load_op.rank, load_op.pipeline_key, load_op.op_id, load_op.op_type, pipeline_tree.consumer_id,
  coalesce(feeding.producers, 0) AS producers,
  load_service.rows_per_batch,
  coalesce(measured.wait_share, load_service.io_share) AS wait_share,
  measured.read_bytes, measured.in_bytes, measured.out_bytes, pipeline_op.source_rows, epoch.epoch_batches,
  epoch.batch_bytes, handed.hand_over_ns
FROM load_op
LEFT JOIN load_service USING (rep, rank, pipeline_key, op_id)
LEFT JOIN measured USING (rep, rank, pipeline_key, op_id)
LEFT JOIN epoch USING (rep, rank, pipeline_key)
LEFT JOIN handed USING (rep, rank, pipeline_key)
INNER JOIN pipeline_tree USING (rep, rank, pipeline_id, op_id)
INNER JOIN pipeline_op USING (rep, rank, pipeline_id, op_id)
LEFT JOIN feeding USING (rep, rank, pipeline_id, op_id)
ORDER BY load_op.rep, load_op.rank, load_op.pipeline_key, load_op.op_id

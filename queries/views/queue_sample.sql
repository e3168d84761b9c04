-- Queue samples with the pipeline they belong to and when, within that pipeline's sampled time, they were taken.
--
-- Reads: pipeline, pipeline_op, queue
-- Gives, one row per (rep, rank, pipeline_id, op_id, t_ns):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   pipeline_id    bigint   the iterator's tree
--   pipeline_key   varchar  equal keys are the same pipeline again
--   role           varchar  train | eval | hidden | other; null when not known
--   op_id          bigint   the operator whose output queue it is
--   op_type        varchar  such as MapOp
--   t_ns           bigint   ns    time of the sample
--   depth          bigint   entries in the queue
--   capacity       bigint   most entries it can hold
--   fill_ratio     double   0..1  depth / capacity; null when either is not known
--   elapsed_share  double   0..1  0 at the pipeline's first sample, 1 at its last; 1 when there is only one time
WITH ranged AS (
  SELECT
    rep,
    rank,
    pipeline_id,
    op_id,
    t_ns,
    depth,
    capacity,
    min(t_ns) OVER (PARTITION BY rep, rank, pipeline_id) AS first_ns,
    max(t_ns) OVER (PARTITION BY rep, rank, pipeline_id) AS last_ns
  FROM queue
)

SELECT
  ranged.rep,
  ranged.rank,
  ranged.pipeline_id,
  coalesce(pipeline.pipeline_key, CAST(ranged.pipeline_id AS VARCHAR)) AS pipeline_key,
  pipeline.role,
  ranged.op_id,
  pipeline_op.op_type,
  ranged.t_ns,
  ranged.depth,
  ranged.capacity,
  ranged.depth / nullif(ranged.capacity, 0) AS fill_ratio,
  coalesce((ranged.t_ns - ranged.first_ns) / nullif(ranged.last_ns - ranged.first_ns, 0), 1.0e0) AS elapsed_share
FROM ranged
LEFT JOIN pipeline
  ON
    ranged.rep = pipeline.rep
    AND ranged.rank = pipeline.rank
    AND ranged.pipeline_id = pipeline.pipeline_id
LEFT JOIN pipeline_op
  ON
    ranged.rep = pipeline_op.rep
    AND ranged.rank = pipeline_op.rank
    AND ranged.pipeline_id = pipeline_op.pipeline_id
    AND ranged.op_id = pipeline_op.op_id

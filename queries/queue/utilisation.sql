-- How full the queue behind each dataset operator was, in the steady state.
--
-- The fill that the diagnosis uses: see the view queue_fill.
--
-- Reads: pipeline_tree?, queue_fill
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key, op_id), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   the operator whose output queue it is
--   op_type       varchar  such as MapOp
--   role          varchar  train | eval | hidden | other; null when not known
--   samples       bigint   samples that count
--   mean_depth    double   entries in the queue
--   capacity      bigint   most entries it can hold
--   mean_ratio    double   0..1  mean of depth / capacity
--   empty_share   double   0..1  samples with an empty queue
--   full_share    double   0..1  samples with a full queue
WITH operator AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    max(op_type) AS op_type
  FROM pipeline_tree
  GROUP BY ALL
)

SELECT
  rep, rank, pipeline_key, op_id, operator.op_type, queue_fill.role, queue_fill.samples, queue_fill.mean_depth,
  queue_fill.capacity,
  queue_fill.fill_ratio AS mean_ratio,
  queue_fill.empty_share, queue_fill.full_share
FROM queue_fill
LEFT JOIN operator USING (rep, rank, pipeline_key, op_id)
ORDER BY rep, rank, pipeline_key, op_id

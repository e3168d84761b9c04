-- How full the queue behind each dataset operator was.
--
-- Samples of all pipelines with the same key (the same pipeline again, such as one per epoch) are pooled.
--
-- Reads: queue_sample
-- Takes:
--   $skip_share  double  share of each pipeline's sampled time left out at its start; 0.25 is usual
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
SELECT
  rep,
  rank,
  pipeline_key,
  op_id,
  max(op_type) AS op_type,
  max(role) AS role,
  count(depth) AS samples,
  avg(depth) AS mean_depth,
  max(capacity) AS capacity,
  avg(fill_ratio) AS mean_ratio,
  count(*) FILTER (WHERE depth = 0) / nullif(count(depth), 0) AS empty_share,
  count(*) FILTER (WHERE depth >= capacity) / nullif(count(fill_ratio), 0) AS full_share
FROM queue_sample
WHERE elapsed_share >= $skip_share
GROUP BY rep, rank, pipeline_key, op_id
ORDER BY rep, rank, pipeline_key, op_id

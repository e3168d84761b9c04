-- Queues of the dataset over time, to be drawn: depth in equal parts of the time that a rank's queues were sampled.
--
-- Pipelines with the same key (the same pipeline again, such as one per epoch) are one.
--
-- Reads: queue_sample
-- Takes:
--   $points  bigint  parts that the time is divided into
--   $rep     bigint  this repetition
--   $rank    bigint  this rank
-- Gives, one row per (pipeline_key, op_id, part), in that order:
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   the operator whose output queue it is
--   part          bigint   from 0; parts without a sample are left out
--   op_type       varchar  such as MapOp
--   role          varchar  train | eval | hidden | other; null when not known
--   t_ns          bigint   ns    the first sample in the part
--   samples       bigint   samples in it
--   mean_depth    double   entries in the queue
--   low_depth     bigint   least
--   high_depth    bigint   most
--   capacity      bigint   most entries it can hold; null when not known
--   mean_ratio    double   0..1  mean of depth / capacity; null when no capacity is known
WITH sampled AS (
  SELECT
    *,
    min(t_ns) OVER () AS first_ns,
    max(t_ns) OVER () + 1 AS end_ns
  FROM queue_sample
  WHERE rep = $rep AND rank = $rank
),

placed AS (
  SELECT
    *,
    CAST(floor((t_ns - first_ns) / nullif(end_ns - first_ns, 0) * $points) AS BIGINT) AS part
  FROM sampled
)

SELECT
  pipeline_key, op_id, part,
  max(op_type) AS op_type,
  max(role) AS role,
  min(t_ns) AS t_ns,
  count(*) AS samples,
  avg(depth) AS mean_depth,
  min(depth) AS low_depth,
  max(depth) AS high_depth,
  max(capacity) AS capacity,
  avg(fill_ratio) AS mean_ratio
FROM placed
GROUP BY ALL
ORDER BY pipeline_key, op_id, part

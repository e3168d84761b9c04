-- Samples of the queues of a dataset iterator within a stretch of time, with the last one before it.
--
-- Reads: queue_sample
-- Takes:
--   $rep          bigint  this repetition
--   $rank         bigint  this rank
--   $pipeline_id  bigint  this iterator
--   $first_ns     bigint  start of the stretch
--   $last_ns      bigint  its end
--   $top          bigint  how many of each queue
-- Gives, one row per (op_id, t_ns), in that order:
--   op_id         bigint   the operator whose output queue it is
--   t_ns          bigint   ns    time of the sample
--   pipeline_key  varchar  equal keys are the same pipeline again
--   depth         bigint   entries in the queue; null when not known
--   capacity      bigint   most entries it can hold; null when not known
--   fill_ratio    double   0..1  depth / capacity; null when either is not known
WITH before AS (
  SELECT
    op_id,
    max(t_ns) AS t_ns
  FROM queue_sample
  WHERE rep = $rep AND rank = $rank AND pipeline_id = $pipeline_id AND t_ns <= $first_ns
  GROUP BY ALL
),

sampled AS (
  SELECT
    queue_sample.op_id, queue_sample.t_ns, pipeline_key,
    min(depth) AS depth,
    max(capacity) AS capacity,
    min(fill_ratio) AS fill_ratio
  FROM queue_sample
  LEFT JOIN before USING (op_id)
  WHERE
    rep = $rep AND rank = $rank AND pipeline_id = $pipeline_id
    AND queue_sample.t_ns BETWEEN coalesce(before.t_ns, $first_ns) AND $last_ns
  GROUP BY ALL
),

ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY op_id ORDER BY t_ns ASC) AS place
  FROM sampled
)

SELECT
  op_id, t_ns, pipeline_key, depth, capacity, fill_ratio
FROM ranked
WHERE place <= $top
ORDER BY op_id, t_ns

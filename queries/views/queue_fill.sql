-- How full the queue behind each dataset operator was in the steady state.
--
-- Samples of all pipelines with the same key (the same pipeline again, such as one per epoch) are pooled. With fewer
-- than three samples in the windows all samples count, and so do those of a pipeline that nothing else is known of.
-- Those of a training's pipelines do not count while it evaluates.
--
-- Reads: eval_span?, pipeline_window?, queue
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again; the pipeline_id as text when there is no key
--   op_id         bigint   the operator whose output queue it is
--   role          varchar  train | eval | hidden | other; null when not known
--   samples       bigint   samples that count
--   mean_depth    double   entries in the queue
--   capacity      bigint   most entries it can hold
--   fill_ratio    double   0..1  mean of depth / capacity; null when no capacity is known
--   empty_share   double   0..1  samples with an empty queue
--   full_share    double   0..1  samples with a full queue; null when no capacity is known
WITH sampled AS (
  SELECT
    queue.rep, queue.rank,
    coalesce(pipeline_window.pipeline_key, CAST(pipeline_id AS VARCHAR)) AS pipeline_key,
    queue.op_id, pipeline_window.role, queue.depth, queue.capacity,
    queue.depth / nullif(queue.capacity, 0) AS fill_ratio,
    coalesce(queue.t_ns BETWEEN pipeline_window.from_ns AND pipeline_window.to_ns, TRUE)
    AND (pipeline_window.role IS DISTINCT FROM 'train' OR coalesce(queue.t_ns > eval_span.end_ns, TRUE)) AS is_steady
  FROM queue
  LEFT JOIN pipeline_window USING (rep, rank, pipeline_id)
  ASOF LEFT JOIN eval_span
    ON queue.rep = eval_span.rep AND queue.rank = eval_span.rank AND queue.t_ns > eval_span.start_ns
),

counted AS (
  SELECT
    *,
    count(CASE WHEN is_steady THEN depth END) OVER (PARTITION BY rep, rank, pipeline_key, op_id) AS steady_samples
  FROM sampled
)

SELECT
  rep, rank, pipeline_key, op_id,
  max(role) AS role,
  count(depth) AS samples,
  avg(depth) AS mean_depth,
  max(capacity) AS capacity,
  avg(fill_ratio) AS fill_ratio,
  count(*) FILTER (WHERE depth = 0) / nullif(count(depth), 0) AS empty_share,
  count(*) FILTER (WHERE depth >= capacity) / nullif(count(fill_ratio), 0) AS full_share
FROM counted
WHERE is_steady OR steady_samples < 3
GROUP BY ALL

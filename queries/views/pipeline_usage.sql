-- Operators of the training pipelines with the use of their queues and CPUs over all samples, warm-up included.
--
-- Reads: cpu?, pipeline_tree, queue_sample?, train_pipeline
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   pipeline_key   varchar  equal keys are the same pipeline again
--   op_id          bigint   operator of that pipeline
--   op_type        varchar  such as MapOp
--   workers        bigint   parallel workers
--   capacity       bigint   size of its output queue; null when it has none
--   has_queue      boolean  it has an output queue, sampled or not
--   consumer_id    bigint   op_id of its consumer; null at the sink
--   samples        bigint   queue samples
--   empty_samples  bigint   those of an empty queue
--   mean_depth     double   mean entries in its queue; null without samples
--   usage_ratio    double   0..1   mean_depth / capacity; null without samples
--   stated_ratio   double   0..1   the same as the source states it; null when it does not
--   cpu_samples    bigint   CPU samples
--   mean_cores     double   cores  it kept busy; 1.0 is one core; null without samples
WITH usage AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    count(*) AS samples,
    count(*) FILTER (WHERE depth = 0) AS empty_samples,
    avg(depth) AS mean_depth,
    max(capacity) AS capacity,
    -- Equal capacities are the rule: then this is the mean depth divided once, as other programs do it.
    CASE
      WHEN min(capacity) = max(capacity) THEN avg(depth) / nullif(max(capacity), 0)
      ELSE avg(fill_ratio)
    END AS usage_ratio
  FROM queue_sample
  WHERE role = 'train' AND fill_ratio IS NOT NULL
  GROUP BY ALL
),

busy AS (
  SELECT
    rep, rank, pipeline_tree.pipeline_key, op_id,
    count(*) AS cpu_samples,
    avg(cpu.user_ratio + cpu.sys_ratio) AS mean_cores
  FROM cpu
  INNER JOIN pipeline_tree USING (rep, rank, pipeline_id, op_id)
  WHERE
    cpu.scope = 'pipeline_op'
    AND pipeline_tree.role = 'train'
    AND cpu.user_ratio IS NOT NULL
    AND cpu.sys_ratio IS NOT NULL
  GROUP BY ALL
)

SELECT
  pipeline_tree.rep, pipeline_tree.rank, pipeline_tree.pipeline_key, pipeline_tree.op_id, pipeline_tree.op_type,
  pipeline_tree.workers,
  coalesce(pipeline_tree.capacity, usage.capacity) AS capacity,
  usage.op_id IS NOT NULL OR (pipeline_tree.capacity IS NOT NULL AND NOT pipeline_tree.inlined) AS has_queue,
  pipeline_tree.consumer_id,
  coalesce(usage.samples, 0) AS samples,
  coalesce(usage.empty_samples, 0) AS empty_samples,
  usage.mean_depth, usage.usage_ratio, pipeline_tree.stated_ratio,
  coalesce(busy.cpu_samples, 0) AS cpu_samples,
  busy.mean_cores
FROM pipeline_tree
SEMI JOIN train_pipeline USING (rep, rank, pipeline_id)
LEFT JOIN usage USING (rep, rank, pipeline_key, op_id)
LEFT JOIN busy USING (rep, rank, pipeline_key, op_id)

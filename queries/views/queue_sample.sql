-- Queue samples with the pipeline they belong to and when, within its life, they were taken; before 0 queues fill.
--
-- Reads: pipeline_op?, pipeline_window?, queue
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
--   elapsed_share  double   0..1  0: the loop's first batch (without batches: sample), less before; 1: the last one
SELECT
  rep, rank, pipeline_id,
  coalesce(pipeline_window.pipeline_key, CAST(pipeline_id AS VARCHAR)) AS pipeline_key,
  pipeline_window.role, queue.op_id, pipeline_op.op_type, queue.t_ns, queue.depth, queue.capacity,
  queue.depth / nullif(queue.capacity, 0) AS fill_ratio,
  coalesce(
    (queue.t_ns - pipeline_window.first_ns) / nullif(pipeline_window.to_ns - pipeline_window.first_ns, 0), 1.0e0
  ) AS elapsed_share
FROM queue
LEFT JOIN pipeline_window USING (rep, rank, pipeline_id)
LEFT JOIN pipeline_op USING (rep, rank, pipeline_id, op_id)

-- How full the queues in front of and behind each operator of the training pipelines were, in the steady state.
--
-- Operators without a queue are looked through.
--
-- Reads: load_op, queue_fill?, queue_link?
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   operator; -1 is the training loop
--   samples       bigint   samples of its output queue, or, of the loop, of its input queue; fewest of several
--   input_ratio   double   0..1  mean fill of its input queue, the emptiest of several; null for a source
--   output_ratio  double   0..1  mean fill of its output queue; null without one, and for the loop
WITH intake AS (
  SELECT
    load_op.rep, load_op.rank, load_op.pipeline_key, load_op.op_id,
    min(own.samples) AS samples,
    min(own.fill_ratio) AS fill_ratio
  FROM load_op
  INNER JOIN queue_link
    ON
      load_op.rep = queue_link.rep
      AND load_op.rank = queue_link.rank
      AND load_op.pipeline_id = queue_link.pipeline_id
      AND load_op.op_id = queue_link.consumer_id
  INNER JOIN queue_fill AS own
    ON
      queue_link.rep = own.rep
      AND queue_link.rank = own.rank
      AND queue_link.pipeline_key = own.pipeline_key
      AND queue_link.producer_id = own.op_id
  GROUP BY ALL
)

SELECT
  rep, rank, pipeline_key, op_id,
  coalesce(own.samples, intake.samples) AS samples,
  intake.fill_ratio AS input_ratio,
  own.fill_ratio AS output_ratio
FROM load_op
LEFT JOIN queue_fill AS own USING (rep, rank, pipeline_key, op_id)
LEFT JOIN intake USING (rep, rank, pipeline_key, op_id)
WHERE own.op_id IS NOT NULL OR intake.op_id IS NOT NULL

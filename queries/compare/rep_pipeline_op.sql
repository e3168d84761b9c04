-- Work per batch and settings of each stage of the training's dataset pipelines in each repetition.
--
-- Of several ranks the one where the stage works longest.
--
-- Reads: op_instructions?, op_service?, pipeline?, pipeline_load, pipeline_op?, pipeline_tree?
-- Gives, one row per (rep, pipeline_key, op_id), in that order:
--   rep             bigint   repetition
--   pipeline_key    varchar  equal keys are the same pipeline again
--   op_id           bigint   operator
--   op_type         varchar  such as MapOp
--   name            varchar  what it does; null when it has no name
--   workers         bigint   rows it works on at a time
--   capacity        bigint   size of its output queue; null when it has none
--   uses_processes  boolean  its Python runs in worker processes; null when unknown
--   consumer_id     bigint   op_id of its consumer; null at the sink
--   site            varchar  file:line of the call that made it; null when unknown
--   code            varchar  file:line of its Python function or class; null when unknown
--   work_ns         double   ns    its workers' time for one batch; null when not measured
--   fill_ratio      double   0..1  mean fill of its output queue; null without one
--   source_rows     bigint   rows  that a Python source says it has; null when it does not, and of others
--   row_bytes       bigint   bytes  that its Python returned for a row, where every row has as many; null else
--   instructions    double         of Python for a row, a batch for a batch operator; null when not counted
WITH tree AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    max(consumer_id) AS consumer_id
  FROM pipeline_tree
  GROUP BY ALL
),

sized AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    max(pipeline_op.source_rows) AS source_rows, CASE
      WHEN min(op_service.out_bytes) = max(op_service.out_bytes) THEN max(op_service.out_bytes)
    END AS row_bytes
  FROM pipeline
  INNER JOIN pipeline_op USING (rep, rank, pipeline_id)
  LEFT JOIN op_service USING (rep, rank, pipeline_id, op_id)
  GROUP BY ALL
),

of_functions AS (
  SELECT
    rep, pipeline_key, op_id, part,
    median(op_instructions.median) AS instructions
  FROM pipeline
  INNER JOIN op_instructions USING (rep, rank, pipeline_id)
  GROUP BY ALL
),

counted AS (
  SELECT
    rep, pipeline_key, op_id,
    sum(instructions) AS instructions
  FROM of_functions
  GROUP BY ALL
)

SELECT
  rep, pipeline_key, op_id,
  max(pipeline_load.op_type) AS op_type,
  max(pipeline_load.name) AS name,
  max(pipeline_load.workers) AS workers,
  max(pipeline_load.capacity) AS capacity,
  bool_or(pipeline_load.uses_processes) AS uses_processes,
  max(tree.consumer_id) AS consumer_id,
  max(pipeline_load.site) AS site,
  max(pipeline_load.code) AS code,
  max(pipeline_load.work_ns) AS work_ns,
  avg(pipeline_load.output_ratio) AS fill_ratio,
  max(sized.source_rows) AS source_rows,
  max(sized.row_bytes) AS row_bytes,
  max(counted.instructions) AS instructions
FROM pipeline_load
LEFT JOIN tree USING (rep, rank, pipeline_key, op_id)
LEFT JOIN sized USING (rep, rank, pipeline_key, op_id)
LEFT JOIN counted USING (rep, pipeline_key, op_id)
WHERE op_id >= 0
GROUP BY ALL
ORDER BY rep, pipeline_key, op_id

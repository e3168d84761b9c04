-- Operators of the dataset graphs with their consumers.
--
-- Reads: pipeline?, pipeline_edge?, pipeline_op
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_id, op_id):
--   rep             bigint   repetition
--   rank            bigint   process rank
--   pipeline_id     bigint   the iterator's tree
--   pipeline_key    varchar  equal keys are the same pipeline again; the pipeline_id as text when there is no key
--   role            varchar  train | eval | hidden | other; null when not known
--   op_id           bigint   operator of that pipeline; 0 is nearest the training loop
--   op_type         varchar  such as MapOp
--   name            varchar  what it does
--   workers         bigint   parallel workers
--   capacity        bigint   size of its output queue; null when it has none
--   is_python       boolean  runs the user's Python; null when unknown
--   uses_processes  boolean  its Python runs in worker processes; null when unknown
--   iterated        boolean  a Python source whose rows are taken one after the other; null when unknown
--   wrapped         boolean  a Python source that hands on the rows of a MindSpore dataset; null when unknown
--   inlined         boolean  runs inside its consumer and has no queue
--   node            bigint   position in the user's dataset graph; null when unknown
--   site            varchar  file:line of the call that made it: of the user's where a library did; null when unknown
--   code            varchar  file:line of its Python function or class; null when unknown
--   stated_ratio    double   0..1  mean fill of its output queue as the source states it; null when it does not
--   consumer_id     bigint   op_id of its consumer, of several the lowest; null at the sink
WITH consumer AS (
  SELECT
    rep, rank, pipeline_id,
    producer_id AS op_id,
    min(consumer_id) AS consumer_id
  FROM pipeline_edge
  GROUP BY ALL
)

SELECT
  pipeline_op.rep, pipeline_op.rank, pipeline_op.pipeline_id,
  coalesce(pipeline.pipeline_key, CAST(pipeline_op.pipeline_id AS VARCHAR)) AS pipeline_key,
  pipeline.role, pipeline_op.op_id, pipeline_op.op_type, pipeline_op.name, pipeline_op.workers, pipeline_op.capacity,
  pipeline_op.is_python, pipeline_op.uses_processes, pipeline_op.iterated,
  pipeline_op.wrapped,
  coalesce(pipeline_op.inlined, FALSE) AS inlined,
  pipeline_op.node,
  coalesce(
    [
      line FOR line IN string_split(pipeline_op.site || coalesce(chr(10) || pipeline_op.callers, ''), chr(10))
      IF NOT regexp_matches(line, '[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python[0-9.]+[/\\]')
    ][1],
    pipeline_op.site
  ) AS site,
  pipeline_op.code,
  pipeline_op.stated_fill_ratio AS stated_ratio,
  consumer.consumer_id
FROM pipeline_op
LEFT JOIN pipeline USING (rep, rank, pipeline_id)
LEFT JOIN consumer USING (rep, rank, pipeline_id, op_id)

-- CPU cores that each dataset operator kept busy.
--
-- Python threads of an operator are not attributed to it by every source: a small number is no proof of waiting.
--
-- Reads: cpu, pipeline, pipeline_op
-- Gives, one row per (rep, rank, pipeline_key, op_id), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   operator of that pipeline
--   op_type       varchar  such as MapOp
--   workers       bigint   parallel workers
--   samples       bigint   samples with both user and system time
--   mean_cores    double   cores  user and system time; 1.0 is one core busy
--   max_cores     double   cores  the busiest sample
WITH sample AS (
  SELECT
    cpu.rep,
    cpu.rank,
    coalesce(pipeline.pipeline_key, CAST(cpu.pipeline_id AS VARCHAR)) AS pipeline_key,
    cpu.op_id,
    pipeline_op.op_type,
    pipeline_op.workers,
    cpu.user_ratio + cpu.sys_ratio AS cores
  FROM cpu
  LEFT JOIN pipeline
    ON
      cpu.rep = pipeline.rep
      AND cpu.rank = pipeline.rank
      AND cpu.pipeline_id = pipeline.pipeline_id
  LEFT JOIN pipeline_op
    ON
      cpu.rep = pipeline_op.rep
      AND cpu.rank = pipeline_op.rank
      AND cpu.pipeline_id = pipeline_op.pipeline_id
      AND cpu.op_id = pipeline_op.op_id
  WHERE cpu.scope = 'pipeline_op' AND cpu.pipeline_id IS NOT NULL AND cpu.op_id IS NOT NULL
)

SELECT
  rep,
  rank,
  pipeline_key,
  op_id,
  max(op_type) AS op_type,
  max(workers) AS workers,
  count(cores) AS samples,
  avg(cores) AS mean_cores,
  max(cores) AS max_cores
FROM sample
GROUP BY rep, rank, pipeline_key, op_id
ORDER BY rep, rank, pipeline_key, op_id

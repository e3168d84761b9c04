-- CPU cores that each dataset operator kept busy, in the steady state.
--
-- Python threads of an operator are not attributed to it by every source. Of a training pipeline it is the figure of
-- the diagnosis, to which the timed calls of its Python add what the samples miss; elsewhere that of the samples.
--
-- Reads: load_cpu?, pipeline_load?, pipeline_tree
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key, op_id), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   operator of that pipeline
--   op_type       varchar  such as MapOp
--   workers       bigint   parallel workers
--   samples       bigint   samples with both user and system time
--   mean_cores    double   cores  user and system time; 1.0 is one core busy
--   max_cores     double   cores  the busiest sample; null without samples
WITH operator AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    max(op_type) AS op_type,
    max(workers) AS workers
  FROM pipeline_tree
  GROUP BY ALL
)

SELECT
  rep, rank, pipeline_key, op_id, operator.op_type, operator.workers,
  coalesce(load_cpu.samples, 0) AS samples,
  coalesce(pipeline_load.cores, load_cpu.cores) AS mean_cores,
  load_cpu.max_cores
FROM operator
LEFT JOIN load_cpu USING (rep, rank, pipeline_key, op_id)
LEFT JOIN pipeline_load USING (rep, rank, pipeline_key, op_id)
WHERE load_cpu.samples > 0 OR pipeline_load.cores IS NOT NULL
ORDER BY rep, rank, pipeline_key, op_id

-- CPU cores that each operator of the training pipelines kept busy in the steady state, as its threads' owner saw it.
--
-- Threads that MindSpore does not count as an operator's (Python workers of a source) are missing here.
--
-- Reads: cpu, pipeline_window
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   operator
--   samples       bigint   samples that count
--   cores         double   cores  mean of user and system time
WITH sampled AS (
  SELECT
    cpu.rep,
    cpu.rank,
    pipeline_window.pipeline_key,
    cpu.op_id,
    count(*) FILTER (WHERE cpu.t_ns >= pipeline_window.from_ns) AS steady_samples,
    avg(cpu.user_ratio + cpu.sys_ratio) FILTER (WHERE cpu.t_ns >= pipeline_window.from_ns) AS steady_cores,
    count(*) AS all_samples,
    avg(cpu.user_ratio + cpu.sys_ratio) AS any_cores
  FROM cpu
  INNER JOIN pipeline_window
    ON
      cpu.rep = pipeline_window.rep
      AND cpu.rank = pipeline_window.rank
      AND cpu.pipeline_id = pipeline_window.pipeline_id
  WHERE cpu.scope = 'pipeline_op' AND pipeline_window.role = 'train'
  GROUP BY cpu.rep, cpu.rank, pipeline_window.pipeline_key, cpu.op_id
)

SELECT
  rep,
  rank,
  pipeline_key,
  op_id,
  CASE WHEN steady_samples < 3 THEN all_samples ELSE steady_samples END AS samples,
  CASE WHEN steady_samples < 3 THEN any_cores ELSE steady_cores END AS cores
FROM sampled

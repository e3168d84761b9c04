-- CPU cores that each dataset operator kept busy in the steady state, as its threads' owner saw it.
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
--   max_cores     double   cores  the busiest sample
WITH sampled AS (
  SELECT
    cpu.rep,
    cpu.rank,
    pipeline_window.pipeline_key,
    cpu.op_id,
    cpu.user_ratio + cpu.sys_ratio AS cores,
    cpu.t_ns >= pipeline_window.from_ns AS is_steady,
    count(CASE WHEN cpu.t_ns >= pipeline_window.from_ns THEN cpu.user_ratio + cpu.sys_ratio END) OVER (
      PARTITION BY cpu.rep, cpu.rank, pipeline_window.pipeline_key, cpu.op_id
    ) AS steady_samples
  FROM cpu
  INNER JOIN pipeline_window
    ON
      cpu.rep = pipeline_window.rep
      AND cpu.rank = pipeline_window.rank
      AND cpu.pipeline_id = pipeline_window.pipeline_id
  WHERE cpu.scope = 'pipeline_op'
)

SELECT
  rep,
  rank,
  pipeline_key,
  op_id,
  count(cores) AS samples,
  avg(cores) AS cores,
  max(cores) AS max_cores
FROM sampled
WHERE is_steady OR steady_samples < 3
GROUP BY rep, rank, pipeline_key, op_id

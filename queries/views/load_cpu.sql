-- CPU cores that each dataset operator kept busy in the steady state, as MindSpore or the operating system saw it.
--
-- Of a training's pipelines without evaluations.
-- Threads that MindSpore does not count as an operator's (Python workers of a source) are missing here. An operator's
-- worker processes are seen from outside, too. MindSpore's figure may hold them or not, so the larger one counts.
--
-- Reads: cpu, eval_span?, pipeline_window
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   operator
--   samples       bigint   samples that count, of the larger figure
--   cores         double   cores  mean of user and system time
--   max_cores     double   cores  the busiest sample
WITH sampled AS (
  SELECT
    cpu.rep, cpu.rank, pipeline_window.pipeline_key, cpu.op_id, cpu.scope, cpu.t_ns,
    cpu.t_ns BETWEEN pipeline_window.from_ns AND pipeline_window.to_ns
    AND (pipeline_window.role IS DISTINCT FROM 'train' OR coalesce(cpu.t_ns > eval_span.end_ns, TRUE)) AS is_steady,
    -- The workers of a process sampler's round are summed; MindSpore has one sample per operator at a time.
    sum(cpu.user_ratio + cpu.sys_ratio) AS cores
  FROM cpu
  INNER JOIN pipeline_window USING (rep, rank, pipeline_id)
  ASOF LEFT JOIN eval_span ON cpu.rep = eval_span.rep AND cpu.rank = eval_span.rank AND cpu.t_ns > eval_span.start_ns
  WHERE cpu.scope IN ('pipeline_op', 'process')
  GROUP BY
    cpu.rep,
    cpu.rank,
    pipeline_window.pipeline_key,
    pipeline_window.from_ns,
    pipeline_window.to_ns,
    pipeline_window.role,
    eval_span.end_ns,
    pipeline_id,
    cpu.op_id,
    cpu.scope,
    cpu.t_ns
),

weighed AS (
  SELECT
    *,
    count(CASE WHEN is_steady THEN cores END) OVER (
      PARTITION BY rep, rank, pipeline_key, op_id, scope
    ) AS steady_samples
  FROM sampled
)

SELECT
  rep, rank, pipeline_key, op_id,
  count(weighed.cores) AS samples,
  avg(weighed.cores) AS cores,
  max(weighed.cores) AS max_cores
FROM weighed
WHERE is_steady OR steady_samples < 3
GROUP BY rep, rank, pipeline_key, op_id, scope
QUALIFY
  row_number() OVER (
    PARTITION BY rep, rank, pipeline_key, op_id ORDER BY avg(weighed.cores) DESC NULLS LAST, scope ASC
  ) = 1

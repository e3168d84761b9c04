-- How many threads of each dataset operator waited for the interpreter's lock in the steady state of a training.
--
-- Counted, not inferred: the kernel tells at what each thread that calls the user's Python waits.
--
-- Reads: cpu, pipeline_window
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   operator
--   threads       double   that waited, mean of the samples
SELECT
  rep, rank, pipeline_window.pipeline_key, cpu.op_id,
  avg(cpu.user_ratio) AS threads
FROM cpu
INNER JOIN pipeline_window USING (rep, rank, pipeline_id)
WHERE
  cpu.scope = 'lock_wait'
  AND pipeline_window.role = 'train'
  AND cpu.t_ns BETWEEN pipeline_window.from_ns AND pipeline_window.to_ns
GROUP BY ALL

-- What CPU a rank could have, and who used it, while its training pipelines were in their steady state.
--
-- Everything is of the cores that the rank may use (its affinity, or its quota when that is less). An interval that
-- lies partly in the steady state counts with that part, and so does one that lies partly in an evaluation. Without an
-- account of CPU time there are no rows.
--
-- Reads: cpu_room?, cpu_use, eval_span?, load_window
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   cores         double   cores  that it may use; null when not known
--   idle_share    double   0..1   of them that was idle; null when not known
--   rank_cores    double   cores  that this rank's processes used, the launcher left out
--   job_cores     double   cores  that the whole job used: other ranks on this machine and pipeprof too
--   delay_share   double   0..1   of the time that the loop's threads (main and MindSpore's) wanted a core, without
--                                 one; null when not counted
WITH used AS (
  SELECT
    rep, rank, start_ns, end_ns,
    sum(CASE WHEN part NOT IN ('neighbour', 'other_rank', 'profiler', 'launcher') THEN cpu_ns ELSE 0 END) AS rank_ns,
    sum(CASE WHEN part <> 'neighbour' THEN cpu_ns ELSE 0 END) AS job_ns,
    sum(CASE WHEN part IN ('main', 'mindspore_thread') AND wait_ns IS NOT NULL THEN cpu_ns END) AS loop_ns,
    sum(CASE WHEN part IN ('main', 'mindspore_thread') THEN wait_ns END) AS delay_ns
  FROM cpu_use
  GROUP BY ALL
),

steady AS (
  SELECT
    load_window.pipeline_key,
    used.*,
    greatest(used.start_ns, load_window.from_ns) AS from_ns,
    least(used.end_ns, load_window.to_ns) AS to_ns
  FROM load_window
  INNER JOIN used
    ON
      load_window.rep = used.rep
      AND load_window.rank = used.rank
      AND load_window.from_ns < used.end_ns
      AND load_window.to_ns > used.start_ns
),

evaluated AS (
  SELECT
    steady.rep, steady.rank, steady.pipeline_key, steady.start_ns,
    sum(least(steady.to_ns, eval_span.end_ns) - greatest(steady.from_ns, eval_span.start_ns)) AS eval_ns
  FROM steady
  INNER JOIN eval_span
    ON
      steady.rep = eval_span.rep
      AND steady.rank = eval_span.rank
      AND steady.from_ns < eval_span.end_ns
      AND steady.to_ns > eval_span.start_ns
  GROUP BY ALL
),

weighed AS (
  SELECT
    steady.*,
    cpu_room.cores, cpu_room.idle_ns,
    steady.end_ns - steady.start_ns AS sampled_ns,
    (steady.to_ns - steady.from_ns - coalesce(evaluated.eval_ns, 0))
    / nullif(steady.end_ns - steady.start_ns, 0) AS weight
  FROM steady
  LEFT JOIN cpu_room USING (rep, rank, start_ns)
  LEFT JOIN evaluated USING (rep, rank, pipeline_key, start_ns)
)

SELECT
  rep, rank, pipeline_key,
  sum(cores * sampled_ns * weight) / nullif(sum(CASE WHEN cores IS NOT NULL THEN sampled_ns * weight END), 0) AS cores,
  sum(idle_ns * weight) / nullif(sum(CASE WHEN idle_ns IS NOT NULL THEN cores * sampled_ns * weight END), 0)
    AS idle_share,
  sum(rank_ns * weight) / nullif(sum(sampled_ns * weight), 0) AS rank_cores,
  sum(job_ns * weight) / nullif(sum(sampled_ns * weight), 0) AS job_cores,
  sum(delay_ns * weight) / nullif(sum((delay_ns + loop_ns) * weight), 0) AS delay_share
FROM weighed
GROUP BY ALL

-- Steps as their profiler divided them: means per step, and shares of computing, exposed communication and free time.
--
-- Without the first step when it is warm-up. Definitions are those of the profiler, and its parts need not add up:
-- exposed is communication without computing beside it, free is neither; stage is the step without waiting for other
-- pipeline stages, bubble that waiting; preparing is host time before the first device task, outside the others.
--
-- Reads: rank_split
-- Ranks: apart
-- Gives, one row per (rep, rank), in that order:
--   rep               bigint   repetition
--   rank              bigint   process rank
--   source            varchar  kind of file: step_trace_time | cluster_step_trace | cluster_analyse
--   steps             bigint   steps that count
--   step_ns           double   ns    computing, exposed and free together
--   computing_ns      double   ns    device computing
--   communication_ns  double   ns    all communication; null when not known
--   overlapped_ns     double   ns    communication beside computing; null when not known
--   exposed_ns        double   ns    communication that is not overlapped
--   receive_ns        double   ns    of it, receiving from another stage; null when not known
--   free_ns           double   ns    neither computing nor communication; null when not known
--   stage_ns          double   ns    the step without waiting for other stages; null when not known
--   bubble_ns         double   ns    waiting for other pipeline stages; null when not known
--   preparing_ns      double   ns    host time before the first device task; null when not known
--   computing_share   double   0..1  computing_ns / step_ns
--   exposed_share     double   0..1  exposed_ns / step_ns
--   free_share        double   0..1  free_ns / step_ns
--   bubble_share      double   0..1  bubble_ns / (stage_ns + bubble_ns)
SELECT
  rep, rank,
  min(source) AS source,
  count(*) AS steps,
  avg(step_ns) AS step_ns,
  avg(computing_ns) AS computing_ns,
  avg(communication_ns) AS communication_ns,
  avg(overlapped_ns) AS overlapped_ns,
  avg(exposed_ns) AS exposed_ns,
  avg(receive_ns) AS receive_ns,
  avg(free_ns) AS free_ns,
  avg(stage_ns) AS stage_ns,
  avg(bubble_ns) AS bubble_ns,
  avg(preparing_ns) AS preparing_ns,
  sum(computing_ns) / nullif(sum(step_ns), 0) AS computing_share,
  sum(exposed_ns) / nullif(sum(step_ns), 0) AS exposed_share,
  sum(free_ns) / nullif(sum(step_ns), 0) AS free_share,
  sum(bubble_ns) / nullif(sum(stage_ns + bubble_ns), 0) AS bubble_share
FROM rank_split
GROUP BY ALL
ORDER BY rep, rank

-- What CPU the training process could have in each phase of the run, and what of it was left.
--
-- Reads: cpu?, cpu_room?, cpu_use, phase_sample
-- Ranks: apart
-- Gives, one row per (rep, rank, phase), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   phase            varchar  set_up | warm_up | steady | ending
--   samples          bigint   sampled intervals
--   dur_ns           bigint   ns     their time in the phase
--   cores            double   cores  it could use: its affinity, or its quota when that is less; null when not known
--   idle_share       double   0..1   of these cores that was idle; null when not known
--   job_cores        double   cores  that the job used
--   neighbour_cores  double   cores  that the rest of the machine used, pipeprof left out
--   throttled_share  double   0..1   of the time its control group was stopped; null when not counted
--   steal_cores      double   cores  that the hypervisor gave to others; null when not counted
--   pressure_share   double   0..1   of the time some thread of the machine waited for a CPU; null when not counted
--   gil_share        double   0..1   of the time Python code held the interpreter's lock; null when not measured
WITH used AS (
  SELECT
    rep, rank, start_ns,
    sum(CASE WHEN part NOT IN ('profiler', 'neighbour') THEN cpu_ns ELSE 0 END) AS job_ns,
    sum(CASE WHEN part = 'neighbour' THEN cpu_ns ELSE 0 END) AS neighbour_ns
  FROM cpu_use
  GROUP BY ALL
),

weighed AS (
  SELECT
    phase_sample.*,
    used.job_ns, used.neighbour_ns, cpu_room.cores, cpu_room.idle_ns, cpu_room.throttled_ns, cpu_room.steal_ns,
    cpu_room.pressure_ns,
    cpu_room.cores * (phase_sample.end_ns - start_ns) AS room_ns
  FROM phase_sample
  INNER JOIN used USING (rep, rank, start_ns)
  LEFT JOIN cpu_room USING (rep, rank, start_ns)
),

held AS (
  SELECT
    rep, rank, phase,
    avg(user_ratio) AS gil_share
  FROM phase_sample
  INNER JOIN cpu USING (rep, rank)
  WHERE scope = 'gil' AND t_ns > start_ns AND t_ns <= phase_sample.end_ns
  GROUP BY ALL
),

counted AS (
  SELECT
    rep, rank, phase,
    count(*) AS samples,
    CAST(sum(dur_ns) AS BIGINT) AS dur_ns,
    sum(cores * dur_ns) / nullif(sum(CASE WHEN cores IS NOT NULL THEN dur_ns END), 0) AS cores,
    sum(idle_ns * weight) / nullif(sum(CASE WHEN idle_ns IS NOT NULL THEN room_ns * weight END), 0) AS idle_share,
    sum(job_ns * weight) / nullif(sum(dur_ns), 0) AS job_cores,
    sum(neighbour_ns * weight) / nullif(sum(dur_ns), 0) AS neighbour_cores,
    sum(throttled_ns * weight) / nullif(sum(CASE WHEN throttled_ns IS NOT NULL THEN dur_ns END), 0) AS throttled_share,
    sum(steal_ns * weight) / nullif(sum(CASE WHEN steal_ns IS NOT NULL THEN dur_ns END), 0) AS steal_cores,
    sum(pressure_ns * weight) / nullif(sum(CASE WHEN pressure_ns IS NOT NULL THEN dur_ns END), 0) AS pressure_share
  FROM weighed
  GROUP BY ALL
)

SELECT
  counted.*,
  held.gil_share
FROM counted
LEFT JOIN held USING (rep, rank, phase)
ORDER BY rep, rank, phase

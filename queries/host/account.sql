-- Who used the CPU in each phase of the run. The shares of a phase add up to 1, and its parts to what the machine was
-- busy. Processes that the same line made are one row.
--
-- Reads: cpu_use, phase_sample, process?
-- Ranks: apart
-- Gives, one row per (rep, rank, phase, part, what, site, library, command), in that order:
--   rep         bigint   repetition
--   rank        bigint   process rank, whose view this is
--   phase       varchar  set_up | warm_up | steady | ending
--   part        varchar  who, see cpu_use
--   what        varchar  worker, child, launcher: what multiprocessing runs in it, python_thread: its function; empty
--                        for none, and for others
--   site        varchar  of them: file:line of the user's call that made it, or of that function; empty for others
--   library     varchar  of them: file:line of the library that made it; empty for others
--   command     varchar  of them: command line; empty for others
--   pid         bigint   of them: one that used CPU; null for others
--   processes   bigint   of them: how many, each with its children; 0 for others
--   cpu_ns      bigint   ns     CPU time
--   cores       double   cores  cpu_ns / time that was sampled
--   wait_cores  double   cores  threads that were runnable without a CPU, in the mean; null when not counted
--   job_share   double   0..1   of the job's CPU time; null for profiler and neighbour, which are not of the job
WITH origin AS (
  SELECT
    rep, rank, pid,
    max(what) AS what,
    max(site) AS site,
    max(library) AS library,
    max(command) AS command
  FROM process
  GROUP BY ALL
),

sampled AS (
  SELECT
    rep, rank, phase,
    sum(dur_ns) AS dur_ns
  FROM phase_sample
  GROUP BY ALL
),

used AS (
  SELECT
    rep, rank, phase_sample.phase, cpu_use.part,
    coalesce(origin.what, '') AS what,
    coalesce(origin.site, '') AS site,
    coalesce(origin.library, '') AS library,
    coalesce(origin.command, '') AS command,
    min(cpu_use.pid) AS pid,
    count(DISTINCT cpu_use.pid) AS processes,
    CAST(floor(sum(cpu_use.cpu_ns * phase_sample.weight) + 0.5e0) AS BIGINT) AS cpu_ns,
    sum(cpu_use.wait_ns * phase_sample.weight) AS wait_ns
  FROM phase_sample
  INNER JOIN cpu_use USING (rep, rank, start_ns)
  LEFT JOIN origin USING (rep, rank, pid)
  GROUP BY
    rep, rank, phase_sample.phase, cpu_use.part, origin.what, origin.site, origin.library,
    origin.command
),

job AS (
  SELECT
    rep, rank, phase,
    sum(cpu_ns) AS cpu_ns
  FROM used
  WHERE part NOT IN ('profiler', 'neighbour')
  GROUP BY ALL
)

SELECT
  rep, rank, phase, used.part, used.what, used.site, used.library, used.command, used.pid, used.processes, used.cpu_ns,
  used.cpu_ns / nullif(sampled.dur_ns, 0) AS cores,
  used.wait_ns / nullif(sampled.dur_ns, 0) AS wait_cores,
  CASE WHEN used.part NOT IN ('profiler', 'neighbour') THEN used.cpu_ns / nullif(job.cpu_ns, 0) END AS job_share
FROM used
INNER JOIN sampled USING (rep, rank, phase)
LEFT JOIN job USING (rep, rank, phase)
ORDER BY rep, rank, phase, used.part, used.what, used.site, used.library, used.command

-- Sampled intervals of CPU time in the phases of the run. One that lies in two phases is in both, with its time there.
--
-- Reads: cpu_use, run_phase
-- Gives, one row per (rep, rank, phase, start_ns):
--   rep       bigint   repetition
--   rank      bigint   process rank
--   phase     varchar  set_up | warm_up | steady | ending
--   start_ns  bigint   ns    the interval begins
--   end_ns    bigint   ns    it ends
--   dur_ns    bigint   ns    its time in the phase
--   weight    double   0..1  of its time that is in the phase
WITH sampled AS (
  SELECT DISTINCT
    rep, rank, start_ns, end_ns
  FROM cpu_use
  WHERE end_ns > start_ns
),

placed AS (
  SELECT
    sampled.*,
    run_phase.phase,
    least(sampled.end_ns, coalesce(run_phase.to_ns, sampled.end_ns)) - greatest(sampled.start_ns, run_phase.from_ns)
      AS dur_ns
  FROM sampled
  INNER JOIN run_phase USING (rep, rank)
)

SELECT
  rep, rank, phase, start_ns, end_ns, dur_ns,
  dur_ns / nullif(end_ns - start_ns, 0) AS weight
FROM placed
WHERE dur_ns > 0

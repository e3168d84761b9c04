-- Communication in a training step: how long, in which phase, and beside operators or not.
--
-- trace: from events; whether an operator runs beside one is not known, so what lies between FP and BP may be
-- overlapped or not. parts: from recorded operators; overlapped is beside one of the rank's own operators, exposed is
-- not. split: the profiler's own division, see step_split. A source has a row when it has the rank.
--
-- Reads: comm_part?, rank_split?, step_part?
-- Ranks: apart
-- Gives, one row per (rep, rank, source), in that order:
--   rep                  bigint   repetition
--   rank                 bigint   process rank
--   source               varchar  parts | split | trace
--   steps                bigint   steps that count
--   step_ns              double   ns    mean length of these steps
--   comm_ns              double   ns    communication per step, events that overlap counted once
--   overlapped_ns        double   ns    of it, beside operators; null when not known
--   exposed_ns           double   ns    of all communication, without operators beside it; null when not known
--   data_wait_ns         double   ns    of it, before FP; null when not known
--   forward_backward_ns  double   ns    of it, from FP to BP; null when not known
--   tail_ns              double   ns    of it, behind BP (of parts: exposed there); null when not known
--   comm_share           double   0..1  comm_ns / step_ns
--   exposed_share        double   0..1  exposed_ns / step_ns
WITH piece AS (
  SELECT
    rep, rank,
    'trace' AS source,
    dur_ns AS step_ns,
    comm_ns,
    data_wait_comm_ns AS data_wait_ns,
    forward_backward_comm_ns AS forward_backward_ns,
    tail_comm_ns AS tail_ns
  FROM comm_part
  UNION ALL BY NAME
  SELECT
    rep, rank,
    'parts' AS source,
    dur_ns AS step_ns,
    exposed_ns + tail_ns + overlapped_ns AS comm_ns,
    overlapped_ns,
    exposed_ns + tail_ns AS exposed_ns,
    tail_ns
  FROM step_part
  UNION ALL BY NAME
  SELECT
    rep, rank,
    'split' AS source,
    step_ns,
    communication_ns AS comm_ns,
    overlapped_ns, exposed_ns
  FROM rank_split
)

SELECT
  rep, rank, source,
  count(*) AS steps,
  avg(step_ns) AS step_ns,
  avg(comm_ns) AS comm_ns,
  avg(overlapped_ns) AS overlapped_ns,
  avg(exposed_ns) AS exposed_ns,
  avg(data_wait_ns) AS data_wait_ns,
  avg(forward_backward_ns) AS forward_backward_ns,
  avg(tail_ns) AS tail_ns,
  sum(comm_ns) / nullif(sum(step_ns), 0) AS comm_share,
  sum(exposed_ns) / nullif(sum(step_ns), 0) AS exposed_share
FROM piece
WHERE comm_ns IS NOT NULL OR exposed_ns IS NOT NULL
GROUP BY ALL
ORDER BY rep, rank, source

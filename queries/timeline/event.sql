-- What ran on a rank within a stretch of time, the longest first: batches asked for, operators, communication, spans.
--
-- Reads: collective?, fetch?, op?, op_info?, op_mark?, span?
-- Takes:
--   $rep       bigint  this repetition
--   $rank      bigint  this rank
--   $first_ns  bigint  start of the stretch
--   $last_ns   bigint  its end
--   $top       bigint  how many
-- Gives, one row per (place), in that order:
--   place     bigint   1 is the longest
--   kind      varchar  fetch | op | collective | span
--   track     varchar  stream, thread or device; of a span its category; null when not known
--   name      varchar  what ran; null when not known
--   phase     varchar  of an operator, as in op_info; null for others
--   start_ns  bigint   ns  start
--   dur_ns    bigint   ns  duration
WITH listed AS (
  SELECT
    'fetch' AS kind,
    side AS track,
    CAST(NULL AS VARCHAR) AS name,
    CAST(NULL AS VARCHAR) AS phase,
    start_ns,
    wait_ns AS dur_ns
  FROM "fetch"
  WHERE rep = $rep AND rank = $rank
  UNION ALL
  SELECT
    'op' AS kind,
    coalesce(op.track, op_info.device) AS track,
    op_info.name, op_info.phase, op.start_ns, op.dur_ns
  FROM op
  LEFT JOIN op_info USING (rep, rank, op_id)
  ANTI JOIN op_mark USING (rep, rank, op_id)
  WHERE rep = $rep AND rank = $rank
  UNION ALL
  SELECT
    'collective' AS kind,
    coalesce(track, group_name) AS track,
    coalesce(name, kind) AS name,
    'communication' AS phase,
    start_ns, dur_ns
  FROM collective
  WHERE rep = $rep AND rank = $rank
  UNION ALL
  SELECT
    'span' AS kind,
    category AS track,
    name,
    CAST(NULL AS VARCHAR) AS phase,
    start_ns, dur_ns
  FROM span
  WHERE rep = $rep AND rank = $rank AND category NOT IN ('window', 'step', 'Trace')
),

ranked AS (
  SELECT
    *,
    row_number() OVER (ORDER BY dur_ns DESC, start_ns ASC, kind ASC, track ASC, name ASC, phase ASC) AS place
  FROM listed
  WHERE start_ns < $last_ns AND start_ns + dur_ns > $first_ns
)

SELECT
  place, kind, track, name, phase, start_ns, dur_ns
FROM ranked
WHERE place <= $top
ORDER BY place

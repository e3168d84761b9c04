-- Communication in training steps over time, to be drawn: how much of each point's mean step, beside operators or not.
--
-- Points are those of step/trace_curve with the same parameters. Of several sources the rank's first counts that has
-- communication: parts (recorded operators), split (the profiler's own division, see step_split), trace (events alone).
-- A mean is that of the point's recorded steps, which may be few: operators are recorded only in op windows.
--
-- Reads: comm_part?, rank_split?, step, step_part?
-- Takes:
--   $points  bigint  most points
--   $rep     bigint  this repetition
--   $rank    bigint  this rank
-- Gives, one row per (point), in that order:
--   point          bigint   from 0; points without a recorded step are left out
--   source         varchar  parts | split | trace
--   steps          bigint   of the point, that were recorded
--   overlapped_ns  double   ns    mean of these steps, beside operators; 0 where it is not known
--   exposed_ns     double   ns    with nothing beside it; 0 where it is not known
--   unknown_ns     double   ns    communication of which neither is known
WITH numbered AS (
  SELECT
    step,
    coalesce(source_step, kind_step) AS position,
    row_number() OVER (ORDER BY step ASC) - 1 AS turn,
    count(*) OVER () AS turns
  FROM step
  WHERE kind IN ('warmup', 'train') AND rep = $rep AND rank = $rank
),

pointed AS (
  SELECT
    step, position,
    CASE WHEN turns <= $points THEN turn ELSE CAST(floor(turn * $points / nullif(turns, 0)) AS BIGINT) END AS point
  FROM numbered
),

piece AS (
  SELECT
    pointed.point,
    'parts' AS source,
    1 AS preference,
    step_part.overlapped_ns,
    step_part.exposed_ns + step_part.tail_ns AS exposed_ns,
    0 AS unknown_ns
  FROM step_part
  INNER JOIN pointed USING (step)
  WHERE step_part.rep = $rep AND step_part.rank = $rank
  UNION ALL
  SELECT
    pointed.point,
    'split' AS source,
    2 AS preference,
    coalesce(rank_split.overlapped_ns, 0) AS overlapped_ns,
    coalesce(rank_split.exposed_ns, 0) AS exposed_ns,
    0 AS unknown_ns
  FROM rank_split
  INNER JOIN pointed USING (position)
  WHERE rank_split.rep = $rep AND rank_split.rank = $rank
  UNION ALL
  SELECT
    pointed.point,
    'trace' AS source,
    3 AS preference,
    0 AS overlapped_ns,
    0 AS exposed_ns,
    comm_part.comm_ns AS unknown_ns
  FROM comm_part
  INNER JOIN pointed USING (step)
  WHERE comm_part.rep = $rep AND comm_part.rank = $rank
),

rated AS (
  SELECT
    *,
    min(CASE WHEN overlapped_ns + exposed_ns + unknown_ns > 0 THEN preference END) OVER () AS first_preference
  FROM piece
)

SELECT
  point, source,
  count(*) AS steps,
  sum(overlapped_ns) / nullif(count(*), 0) AS overlapped_ns,
  sum(exposed_ns) / nullif(count(*), 0) AS exposed_ns,
  sum(unknown_ns) / nullif(count(*), 0) AS unknown_ns
FROM rated
WHERE preference = first_preference
GROUP BY ALL
ORDER BY point

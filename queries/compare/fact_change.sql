-- Facts that differ between the two sides of a comparison: operators and pipeline stages.
--
-- Shapes of outputs (behind `->`) that one side does not know are no difference.
--
-- Reads: side_fact
-- Gives, one row per (name), in that order:
--   name    varchar  such as `op NAME` or `stage NAME`
--   base    varchar  the fact on the base side; null when it is not there
--   new     varchar  the fact on the new side; null when it is not there
--   change  varchar  appeared | vanished | changed
WITH paired AS (
  SELECT
    name,
    max(value) FILTER (WHERE side = 'base') AS base,
    max(value) FILTER (WHERE side = 'new') AS new
  FROM side_fact
  GROUP BY ALL
)

SELECT
  name, base, new,
  CASE WHEN base IS NULL THEN 'appeared' WHEN new IS NULL THEN 'vanished' ELSE 'changed' END AS change
FROM paired
WHERE
  base IS NULL OR new IS NULL OR (
    base <> new AND NOT (
      regexp_matches(base || '|' || new, '->\s*(\||$)')
      AND regexp_replace(base, ' ->[^|]*', '', 'g') = regexp_replace(new, ' ->[^|]*', '', 'g')
    )
  )
ORDER BY name

-- The calls that the training's waits for its data loader are spent on, in the training's own thread and in those of
-- loaders and readers.
--
-- Of each call only what lies within a wait counts. Calls of one name that lie in each other count once; addresses of
-- objects are no part of a name. Threads that load at the same time add up, so that a share of loading_ns is one of all
-- that they do meanwhile.
--
-- Reads: fetch, op, op_info, train_step
-- Ranks: apart
-- Takes:
--   $least  double  of the loading, 0 to 1: calls of a name that take less are left out
-- Gives, one row per (rep, rank, depth, busy_ns, name, category), in that order:
--   rep         bigint   repetition
--   rank        bigint   process rank
--   depth       double   calls that it lies in, itself counted; the mean over its time
--   name        varchar  such as `file.py(12): function`
--   category    varchar  kind of event in the source; null when it has none
--   tracks      bigint   threads that it ran in
--   is_wait     boolean  it is the wait itself, as its thread sees it, and no part of the loading
--   busy_ns     bigint   ns    in it, summed over threads
--   loading_ns  bigint   ns    in any other call, summed over threads
--   covered_ns  bigint   ns    of the waits, in which any thread was in such a call
--   wait_ns     bigint   ns    of all waits in training steps
WITH waited AS (
  SELECT
    rep, rank, "fetch".start_ns,
    "fetch".start_ns + "fetch".wait_ns AS end_ns
  FROM "fetch"
  INNER JOIN train_step USING (rep, rank, step)
  WHERE "fetch".wait_ns > 0
),

waiting AS (
  SELECT
    rep, rank,
    CAST(sum(end_ns - start_ns) AS BIGINT) AS wait_ns
  FROM waited
  GROUP BY ALL
),

called AS (
  SELECT
    rep, rank, op.exec_id, op.track, op.start_ns, op_info.category,
    regexp_replace(op_info.name, ' at 0x[0-9a-fA-F]+', '') AS name,
    op.start_ns + op.dur_ns AS end_ns
  FROM op
  INNER JOIN op_info USING (rep, rank, op_id)
  WHERE op_info.phase = 'data' AND op.dur_ns > 0 AND coalesce(op.side, 'host') = 'host'
),

-- At one moment calls end before others begin, and callers begin before what they call.
edge AS (
  SELECT
    rep, rank, track, exec_id,
    start_ns AS at_ns,
    1 AS opened
  FROM called
  UNION ALL
  SELECT
    rep, rank, track, exec_id,
    end_ns AS at_ns,
    -1 AS opened
  FROM called
),

nested AS (
  SELECT
    rep, rank, exec_id, opened,
    CAST(sum(opened) OVER (
      PARTITION BY rep, rank, track ORDER BY at_ns, opened, exec_id ROWS UNBOUNDED PRECEDING
    ) AS BIGINT) AS depth
  FROM edge
),

inside AS (
  SELECT
    called.rep, called.rank, called.track, called.exec_id, called.name, called.category, nested.depth,
    waited.start_ns AS wait_start_ns,
    called.start_ns = waited.start_ns AND called.end_ns = waited.end_ns
    AND coalesce(called.category, '') <> 'python_function' AS is_wait,
    greatest(called.start_ns, waited.start_ns) AS from_ns,
    least(called.end_ns, waited.end_ns) AS until_ns
  FROM called
  INNER JOIN nested
    ON called.rep = nested.rep AND called.rank = nested.rank AND called.exec_id = nested.exec_id AND nested.opened = 1
  INNER JOIN waited
    ON
      called.rep = waited.rep AND called.rank = waited.rank
      AND called.start_ns < waited.end_ns AND called.end_ns > waited.start_ns
),

counted AS (
  SELECT
    *,
    until_ns - greatest(from_ns, coalesce(max(until_ns) OVER of_name, from_ns)) AS name_ns
  FROM inside
  WINDOW of_name AS (
    PARTITION BY rep, rank, track, name, category, wait_start_ns
    ORDER BY from_ns, exec_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
),

working AS (
  SELECT
    rep, rank,
    until_ns - greatest(from_ns, coalesce(max(until_ns) OVER of_thread, from_ns)) AS thread_ns,
    until_ns - greatest(from_ns, coalesce(max(until_ns) OVER of_rank, from_ns)) AS rank_ns
  FROM inside
  WHERE NOT is_wait
  WINDOW
    of_thread AS (
      PARTITION BY rep, rank, track, wait_start_ns
      ORDER BY from_ns, exec_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ),
    of_rank AS (
      PARTITION BY rep, rank, wait_start_ns
      ORDER BY from_ns, exec_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),

loading AS (
  SELECT
    rep, rank,
    CAST(sum(greatest(thread_ns, 0)) AS BIGINT) AS loading_ns,
    CAST(sum(greatest(rank_ns, 0)) AS BIGINT) AS covered_ns
  FROM working
  GROUP BY ALL
),

by_name AS (
  SELECT
    rep, rank, name, category,
    bool_and(is_wait) AS is_wait,
    sum(depth * greatest(name_ns, 0)) / nullif(sum(greatest(name_ns, 0)), 0) AS depth,
    count(DISTINCT track) AS tracks,
    CAST(sum(greatest(name_ns, 0)) AS BIGINT) AS busy_ns
  FROM counted
  GROUP BY ALL
)

SELECT
  rep, rank, by_name.depth, by_name.name, by_name.category, by_name.tracks, by_name.is_wait, by_name.busy_ns,
  coalesce(loading.loading_ns, 0) AS loading_ns,
  coalesce(loading.covered_ns, 0) AS covered_ns,
  waiting.wait_ns
FROM by_name
INNER JOIN waiting USING (rep, rank)
LEFT JOIN loading USING (rep, rank)
WHERE by_name.busy_ns >= $least * coalesce(loading.loading_ns, 0)
ORDER BY rep, rank, by_name.depth, by_name.busy_ns, by_name.name, by_name.category

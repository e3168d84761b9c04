-- Share of the training time that the loop spent waiting for its next batch.
--
-- A loop that goes through a DataLoader again in each epoch waits for the start of its iterator, too, which lies
-- between the steps, as the end of its workers does.
--
-- Reads: pipeline?, train_step
-- Ranks: apart
-- Gives, one row per (rep, rank), in that order:
--   rep                   bigint   repetition
--   rank                  bigint   process rank
--   kind                  varchar  train, or warmup when the rank has no step of kind train
--   steps                 bigint   steps outside op windows; all when every one is inside
--   from_window           boolean  every step is in a window, so the step times are inflated
--   fetch_steps           bigint   those that fetched a batch
--   step_ns               bigint   ns    their summed time
--   fetch_wait_ns         bigint   ns    their summed time inside the dataset iterator; null when none fetched
--   data_wait_share       double   0..1  (fetch_wait_ns + s) / (step_ns + s + e); s, e: the starts of a loader's
--       iterators behind its first, and the ends of their workers; null when none fetched
--   median_fetch_wait_ns  double   ns    of the steps that fetched a batch; null when none did
WITH started AS (
  SELECT
    rep, rank,
    sum(ready_ns - created_ns) AS starting_ns,
    sum(ready_ns - created_ns + coalesce(closing_ns, 0)) AS between_ns
  FROM pipeline
  WHERE role = 'train' AND iteration > 0
  GROUP BY ALL
)

SELECT
  rep, rank,
  min(kind) AS kind,
  count(*) AS steps,
  bool_and(in_window) AS from_window,
  count(fetch_wait_ns) AS fetch_steps,
  CAST(sum(dur_ns) AS BIGINT) AS step_ns,
  CAST(sum(fetch_wait_ns) AS BIGINT) AS fetch_wait_ns,
  (sum(fetch_wait_ns) + coalesce(any_value(starting_ns), 0))
  / nullif(sum(dur_ns) + coalesce(any_value(between_ns), 0), 0) AS data_wait_share,
  median(fetch_wait_ns) AS median_fetch_wait_ns
FROM train_step
LEFT JOIN started USING (rep, rank)
WHERE timed
GROUP BY ALL
ORDER BY rep, rank

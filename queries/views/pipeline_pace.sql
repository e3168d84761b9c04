-- How fast the training took batches from each of its pipelines, and how long it waited for them, in the steady state.
--
-- Time is that of the training steps outside op windows that fetched from the pipeline, so evaluation and checkpoints
-- between steps do not count; where no such step is known, the time from the first batch of the window to its last.
-- In sink mode it is the device that waits; where its side is not known, the thread that fills the queue to it.
--
-- Reads: fetch, pipeline_window, train_step?
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   pipeline_key   varchar  equal keys are the same pipeline again
--   side           varchar  whose waiting it is: iterator | host_queue | data_queue
--   batches        bigint   batches in the window
--   span_ns        bigint   ns    time they took
--   wait_ns        bigint   ns    part of it spent waiting for a batch
--   wait_share     double   0..1  wait_ns / span_ns
--   rate           double   batches per second
--   consumer_rate  double   batches per second  what the loop could take: batches / (span_ns - wait_ns)
WITH taken AS (
  SELECT
    fetched.rep, fetched.rank, pipeline_window.pipeline_key, fetched.pipeline_id, fetched.side, fetched.step,
    fetched.wait_ns,
    fetched.start_ns + fetched.wait_ns AS got_ns,
    row_number() OVER (
      PARTITION BY fetched.rep, fetched.rank, fetched.pipeline_id, fetched.side
      ORDER BY fetched.start_ns + fetched.wait_ns, fetched."fetch"
    ) AS position
  FROM "fetch" AS fetched
  INNER JOIN pipeline_window USING (rep, rank, pipeline_id)
  WHERE
    pipeline_window.role = 'train'
    AND fetched.wait_ns IS NOT NULL
    AND fetched.start_ns + fetched.wait_ns >= pipeline_window.from_ns
),

-- A step counts once, whatever it fetched.
stepped AS (
  SELECT
    rep, rank, taken.pipeline_key, taken.side,
    count(*) AS batches,
    sum(taken.wait_ns) AS wait_ns,
    max(train_step.dur_ns) AS dur_ns
  FROM taken
  INNER JOIN train_step USING (rep, rank, step)
  WHERE train_step.timed
  GROUP BY rep, rank, taken.pipeline_key, taken.side, step
),

-- The first batch of each tree begins the span; its own wait came before.
spanned AS (
  SELECT
    rep, rank, pipeline_key, side,
    count(*) - 1 AS batches,
    coalesce(sum(wait_ns) FILTER (WHERE position > 1), 0) AS wait_ns,
    max(got_ns) - min(got_ns) AS dur_ns
  FROM taken
  GROUP BY rep, rank, pipeline_key, pipeline_id, side
),

measured AS (
  SELECT
    *,
    1 AS preference
  FROM stepped
  UNION ALL
  SELECT
    *,
    2 AS preference
  FROM spanned
),

summed AS (
  SELECT
    rep, rank, pipeline_key, side,
    CAST(sum(batches) AS BIGINT) AS batches,
    CAST(sum(dur_ns) AS BIGINT) AS span_ns,
    CAST(sum(wait_ns) AS BIGINT) AS wait_ns,
    row_number() OVER (
      PARTITION BY rep, rank, pipeline_key
      ORDER BY CASE side WHEN 'data_queue' THEN 1 WHEN 'iterator' THEN 2 ELSE 3 END, preference
    ) AS position
  FROM measured
  GROUP BY rep, rank, pipeline_key, side, preference
  HAVING sum(dur_ns) > 0 AND sum(batches) > 0
)

SELECT
  rep, rank, pipeline_key, side, batches, span_ns, wait_ns,
  least(wait_ns / nullif(span_ns, 0), 1.0e0) AS wait_share,
  1.0e9 * batches / nullif(span_ns, 0) AS rate,
  1.0e9 * batches / nullif(greatest(span_ns - wait_ns, 0), 0) AS consumer_rate
FROM summed
WHERE position = 1

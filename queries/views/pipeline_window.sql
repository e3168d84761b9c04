-- The part of each dataset iterator's life that stands for its steady state: from a quarter of the time between the
-- first and the last batch to the last batch. Before that, queues fill and the program warms up.
--
-- Reads: fetch?, pipeline, queue?
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_id):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_id   bigint   the iterator's tree
--   pipeline_key  varchar  equal keys are the same pipeline again; the pipeline_id as text when there is no key
--   role          varchar  train | eval | hidden | other; null when not known
--   first_ns      bigint   ns  the loop had its first batch; without batches the first queue sample
--   from_ns       bigint   ns  the window begins
--   to_ns         bigint   ns  it ends: the last batch, or the last queue sample
--   batches       bigint   batches of the whole iterator
WITH fetched AS (
  SELECT
    rep, rank, pipeline_id,
    min(start_ns + wait_ns) AS first_ns,
    max(start_ns + wait_ns) AS last_ns,
    count(*) AS batches
  FROM "fetch"
  WHERE coalesce(side, 'iterator') <> 'data_queue' AND start_ns IS NOT NULL AND wait_ns IS NOT NULL
  GROUP BY ALL
),

sampled AS (
  SELECT
    rep, rank, pipeline_id,
    min(t_ns) AS first_ns,
    max(t_ns) AS last_ns
  FROM queue
  GROUP BY ALL
)

SELECT
  rep, rank, pipeline_id,
  coalesce(pipeline.pipeline_key, CAST(pipeline_id AS VARCHAR)) AS pipeline_key,
  pipeline.role,
  coalesce(fetched.first_ns, sampled.first_ns) AS first_ns,
  coalesce(fetched.first_ns, sampled.first_ns)
  + CAST(
    floor(0.25e0 * (coalesce(fetched.last_ns, sampled.last_ns) - coalesce(fetched.first_ns, sampled.first_ns)))
    AS BIGINT
  ) AS from_ns,
  coalesce(fetched.last_ns, sampled.last_ns) AS to_ns,
  coalesce(fetched.batches, 0) AS batches
FROM pipeline
LEFT JOIN fetched USING (rep, rank, pipeline_id)
LEFT JOIN sampled USING (rep, rank, pipeline_id)

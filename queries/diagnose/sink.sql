-- Data sink mode: how often the queue on the host and the one on the device were empty, and how long each side waited.
--
-- Batches after the first quarter count.
--
-- Reads: fetch, pipeline_window
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key), in that order:
--   rep                 bigint   repetition
--   rank                bigint   process rank
--   pipeline_key        varchar  equal keys are the same pipeline again
--   batches             bigint   batches on the host side
--   host_empty          bigint   of them left the host queue empty; null without sizes
--   host_empty_share    double   0..1  of them left the host queue empty; null without sizes
--   host_wait_share     double   0..1  time for getting batches / time for getting them and handing them on;
--                                      null without times
--   device_batches      bigint   requests of the device; 0 without a device side
--   device_empty        bigint   of them found its queue empty; null without sizes
--   device_empty_share  double   0..1  of the device's requests found its queue empty; null without a device side
--   device_wait_ns      double   ns    mean wait of the device; null without a device side
SELECT
  fetched.rep, fetched.rank, pipeline_window.pipeline_key,
  count(*) FILTER (WHERE fetched.side = 'host_queue') AS batches,
  CAST(sum(CAST(fetched.depth = 0 AS INTEGER)) FILTER (WHERE fetched.side = 'host_queue') AS BIGINT) AS host_empty,
  count(*) FILTER (WHERE fetched.side = 'host_queue' AND fetched.depth = 0)
  / nullif(count(fetched.depth) FILTER (WHERE fetched.side = 'host_queue'), 0) AS host_empty_share,
  sum(fetched.wait_ns) FILTER (WHERE fetched.side = 'host_queue')
  / nullif(sum(fetched.wait_ns + coalesce(fetched.push_ns, 0)) FILTER (WHERE fetched.side = 'host_queue'), 0)
    AS host_wait_share,
  count(*) FILTER (WHERE fetched.side = 'data_queue') AS device_batches,
  CAST(sum(CAST(fetched.depth = 0 AS INTEGER)) FILTER (WHERE fetched.side = 'data_queue') AS BIGINT) AS device_empty,
  count(*) FILTER (WHERE fetched.side = 'data_queue' AND fetched.depth = 0)
  / nullif(count(fetched.depth) FILTER (WHERE fetched.side = 'data_queue'), 0) AS device_empty_share,
  avg(fetched.wait_ns) FILTER (WHERE fetched.side = 'data_queue') AS device_wait_ns
FROM "fetch" AS fetched
INNER JOIN pipeline_window USING (rep, rank, pipeline_id)
WHERE
  pipeline_window.role = 'train'
  AND fetched.side IN ('host_queue', 'data_queue')
  AND coalesce(fetched.start_ns + fetched.wait_ns >= pipeline_window.from_ns, TRUE)
GROUP BY ALL
ORDER BY fetched.rep, fetched.rank, pipeline_window.pipeline_key

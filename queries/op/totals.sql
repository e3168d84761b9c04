-- Operators whose executions the source gives only in sum, by name or by type, with the most time first.
--
-- By type, a device's own totals of types count where the source has them, else the sums of its operators. Nothing is
-- added up over devices: AI Core, AI CPU and host run side by side.
--
-- Reads: op?, op_info?, op_total
-- Ranks: apart
-- Takes:
--   $group_by  varchar  name | type
--   $top       bigint   how many of each rank and device
-- Gives, one row per (rep, rank, device, layer, position), in that order:
--   rep         bigint   repetition
--   rank        bigint   process rank
--   device      varchar  where they ran, such as AI_CORE, AI_CPU, host; empty where the source does not say
--   layer       varchar  of the host the kind of file, because they are layers of the same time; else empty
--   position    bigint   1 has the most time; those without a total come last
--   source      varchar  kind of file, such as aicore_type, op_statistic, api_statistic
--   name        varchar  full name; null by type
--   type        varchar  operator type, or level of an API
--   in_shapes   varchar  input shapes as text; null by type
--   count       bigint   executions; null when the source does not say
--   total_ns    bigint   ns    sum of durations; null when the source has only the mean
--   self_ns     bigint   ns    without the operators it called; total_ns when the source does not tell
--   mean_ns     double   ns    of an execution
--   min_ns      bigint   ns    shortest; null when the source does not say
--   max_ns      bigint   ns    longest; null when the source does not say
--   device_ns   bigint   ns    time on the device, of a host operator
--   share       double   0..1  self_ns / self_ns of all of this rank, device and layer
--   recorded    boolean  the rank's executions on this device are recorded one by one, too
WITH executed AS (
  SELECT
    rep, rank,
    coalesce(op_info.device, '') AS place
  FROM op
  INNER JOIN op_info USING (rep, rank, op_id)
  GROUP BY ALL
),

rated AS (
  SELECT
    *,
    coalesce(device, '') AS place,
    CASE WHEN device = 'host' THEN source ELSE '' END AS layer,
    CASE WHEN name IS NULL THEN 1 ELSE 0 END AS is_type,
    max(CASE WHEN name IS NULL THEN 1 ELSE 0 END) OVER (
      PARTITION BY rep, rank, coalesce(device, ''), CASE WHEN device = 'host' THEN source ELSE '' END
    ) AS has_types,
    min(CASE WHEN name IS NULL THEN 1 ELSE 0 END) OVER (
      PARTITION BY rep, rank, coalesce(device, ''), CASE WHEN device = 'host' THEN source ELSE '' END
    ) AS only_types
  FROM op_total
),

item AS (
  SELECT
    rep, rank, place, layer, source,
    CASE WHEN $group_by = 'name' THEN name END AS name,
    CASE WHEN $group_by = 'name' THEN type ELSE coalesce(type, name) END AS type,
    CASE WHEN $group_by = 'name' THEN shapes END AS in_shapes,
    count, total_ns,
    coalesce(self_ns, total_ns) AS self_ns,
    mean_ns, min_ns, max_ns, device_ns
  FROM rated
  WHERE is_type = CASE WHEN $group_by = 'name' THEN only_types ELSE has_types END
),

summed AS (
  SELECT
    rep, rank, place, layer,
    min(source) AS source,
    name, type, in_shapes,
    CAST(sum(count) AS BIGINT) AS executions,
    CASE WHEN count(total_ns) = count(*) THEN CAST(sum(total_ns) AS BIGINT) END AS total_ns,
    CASE WHEN count(self_ns) = count(*) THEN CAST(sum(self_ns) AS BIGINT) END AS self_ns,
    avg(mean_ns) AS mean_ns,
    min(min_ns) AS min_ns,
    max(max_ns) AS max_ns,
    CAST(sum(device_ns) AS BIGINT) AS device_ns
  FROM item
  GROUP BY ALL
),

placed AS (
  SELECT
    *,
    sum(self_ns) OVER (PARTITION BY rep, rank, place, layer) AS all_ns,
    row_number() OVER (
      PARTITION BY rep, rank, place, layer
      ORDER BY
        self_ns DESC NULLS LAST, mean_ns DESC NULLS LAST, name ASC NULLS LAST, type ASC NULLS LAST,
        in_shapes ASC NULLS LAST
    ) AS position
  FROM summed
)

SELECT
  rep, rank,
  place AS device,
  placed.layer, placed.position, placed.source, placed.name, placed.type, placed.in_shapes,
  placed.executions AS count,
  placed.total_ns, placed.self_ns,
  coalesce(placed.total_ns / nullif(placed.executions, 0), placed.mean_ns) AS mean_ns,
  placed.min_ns, placed.max_ns, placed.device_ns,
  placed.self_ns / nullif(placed.all_ns, 0) AS share,
  executed.place IS NOT NULL AS recorded
FROM placed
LEFT JOIN executed USING (rep, rank, place)
WHERE placed.position <= $top
ORDER BY rep, rank, device, layer, position

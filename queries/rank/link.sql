-- Links between two ranks by kind: how much they moved, how fast, and how fast beside comparable ones. Slowest first.
--
-- A link is compared with the other links of its kind in the same operator and step that moved about as much (within a
-- tenth): small messages are slow on every link. A rank's copies to itself are left out. Numbers that count only within
-- a communication group are replaced by ranks of the job, see link_move.
--
-- Reads: link_move
-- Takes:
--   $top  bigint  how many of each repetition and kind
-- Gives, one row per (rep, transport, place), in that order:
--   rep          bigint   repetition
--   transport    varchar  kind of link: SDMA, HCCS, RDMA, PCIE, SIO, ...
--   place        bigint   1 is the slowest beside comparable ones, then those that have none, slowest first
--   src_rank     bigint   sender
--   dst_rank     bigint   receiver
--   links        bigint   links of this kind
--   moves        bigint   operators x steps
--   moved_bytes  bigint   bytes  in all
--   moving_ns    bigint   ns     in all
--   rate         double   bytes per second
--   compared     bigint   moves that have a comparable one
--   ratio        double   median of (rate / median rate of the comparable ones); null when there is none
--   ratio_low    double   lower quartile of that; null when there is none
--   ratio_high   double   upper quartile of that; null when there is none
--   local_group  varchar  the group within which the two ranks count; empty when they are ranks of the job
WITH usable AS (
  SELECT
    rep, src_rank, dst_rank, local_group,
    coalesce(transport, 'unknown') AS transport,
    coalesce(step, -1) AS step,
    coalesce(name, '') AS name,
    coalesce(group_name, '') AS group_name,
    CAST(sum(bytes) AS BIGINT) AS moved_bytes,
    CAST(sum(dur_ns) AS BIGINT) AS moving_ns
  FROM link_move
  WHERE src_rank <> dst_rank AND bytes > 0 AND dur_ns > 0
  GROUP BY ALL
),

measured AS (
  SELECT
    *,
    moved_bytes / nullif(moving_ns, 0) AS rate,
    median(moved_bytes) OVER (PARTITION BY rep, transport, step, name, group_name) AS usual_bytes
  FROM usable
),

comparable AS (
  SELECT
    *,
    CASE WHEN moved_bytes BETWEEN 0.9e0 * usual_bytes AND 1.1e0 * usual_bytes THEN 1 ELSE 0 END AS is_usual
  FROM measured
),

beside AS (
  SELECT
    *,
    CASE WHEN is_usual = 1 THEN sum(is_usual) OVER (PARTITION BY rep, transport, step, name, group_name) END AS others,
    median(CASE WHEN is_usual = 1 THEN rate END) OVER (PARTITION BY rep, transport, step, name, group_name)
      AS usual_rate
  FROM comparable
),

link AS (
  SELECT
    rep, transport, src_rank, dst_rank, local_group,
    count(*) AS moves,
    CAST(sum(moved_bytes) AS BIGINT) AS moved_bytes,
    CAST(sum(moving_ns) AS BIGINT) AS moving_ns,
    1e9 * sum(moved_bytes) / nullif(sum(moving_ns), 0) AS rate,
    count(CASE WHEN others > 1 THEN 1 END) AS compared,
    median(CASE WHEN others > 1 THEN rate / nullif(usual_rate, 0) END) AS ratio,
    percentile_cont(0.25e0) WITHIN GROUP (ORDER BY CASE WHEN others > 1 THEN rate / nullif(usual_rate, 0) END)
      AS ratio_low,
    percentile_cont(0.75e0) WITHIN GROUP (ORDER BY CASE WHEN others > 1 THEN rate / nullif(usual_rate, 0) END)
      AS ratio_high
  FROM beside
  GROUP BY rep, transport, src_rank, dst_rank, local_group
),

placed AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY rep, transport) AS links,
    row_number() OVER (
      PARTITION BY rep, transport
      ORDER BY
        CASE WHEN ratio IS NULL THEN 1 ELSE 0 END ASC, ratio ASC, rate ASC, src_rank ASC, dst_rank ASC, local_group ASC
    ) AS place
  FROM link
)

SELECT
  rep, transport, place, src_rank, dst_rank, links, moves, moved_bytes, moving_ns, rate, compared, ratio, ratio_low,
  ratio_high, local_group
FROM placed
WHERE place <= $top
ORDER BY rep, transport, place

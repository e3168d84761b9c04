-- How often each rank comes last to a collective, how long the others waited for it there, and where most.
--
-- See the view comm_match.
--
-- Reads: comm_match
-- Gives, one row per (rep, rank), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   steps            bigint   steps with matched collectives
--   events           bigint   matched collectives of the rank
--   last_share       double   0..1  of them, in which it was last
--   expected_share   double   0..1  of them, in which it would be last by chance
--   waited_ns        bigint   ns    its own waiting for others
--   caused_ns        bigint   ns    waiting of the others for it, all of them together
--   per_rank_ns      double   ns    caused_ns / steps / number of others: for how long each of them waits in a step
--   collective       varchar  the collective in which it caused the most waiting; null when it caused none
--   collective_kind  varchar  all_reduce | all_gather | ...; null when it caused none
--   collective_ns    bigint   ns    waiting that it caused there; null when it caused none
WITH by_name AS (
  SELECT
    rep, rank, name,
    min(kind) AS kind,
    CAST(sum(caused_ns) AS BIGINT) AS caused_ns
  FROM comm_match
  GROUP BY ALL
),

worst AS (
  SELECT *
  FROM by_name
  QUALIFY row_number() OVER (PARTITION BY rep, rank ORDER BY caused_ns DESC, name ASC) = 1
),

summed AS (
  SELECT
    rep, rank,
    count(DISTINCT position) AS steps,
    count(*) AS events,
    count(CASE WHEN is_last THEN 1 END) AS last_events,
    sum(1 / nullif(ranks, 0)) AS expected_events,
    CAST(sum(waiting_ns) AS BIGINT) AS waited_ns,
    CAST(sum(caused_ns) AS BIGINT) AS caused_ns,
    sum(caused_ns / nullif(ranks - 1, 0)) AS each_ns
  FROM comm_match
  GROUP BY ALL
)

SELECT
  summed.rep, summed.rank, summed.steps, summed.events,
  summed.last_events / nullif(summed.events, 0) AS last_share,
  summed.expected_events / nullif(summed.events, 0) AS expected_share,
  summed.waited_ns, summed.caused_ns,
  summed.each_ns / nullif(summed.steps, 0) AS per_rank_ns,
  CASE WHEN worst.caused_ns > 0 THEN worst.name END AS collective,
  CASE WHEN worst.caused_ns > 0 THEN worst.kind END AS collective_kind,
  CASE WHEN worst.caused_ns > 0 THEN worst.caused_ns END AS collective_ns
FROM summed
INNER JOIN worst USING (rep, rank)
ORDER BY summed.rep, summed.rank

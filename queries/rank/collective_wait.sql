-- Collectives in which ranks wait for each other, and which rank comes last. The largest waiting first.
--
-- See the view comm_match: the rank that comes last has the shortest event.
--
-- Reads: comm_match
-- Takes:
--   $top  bigint  how many of each repetition
-- Gives, one row per (rep, place), in that order:
--   rep          bigint   repetition
--   place        bigint   1 has the largest waiting
--   peers        bigint   group of ranks that do the same work; -1 where the source names the communication group
--   name         varchar  full name
--   group_name   varchar  communication group; empty where the source names none
--   kind         varchar  all_reduce | all_gather | ...
--   ranks        bigint   ranks that have it
--   steps        bigint   steps in which two ranks or more have it
--   events       bigint   matched events
--   transfer_ns  double   ns    median of the shortest
--   waiting_ns   bigint   ns    waiting of all ranks together
--   wait_share   double   0..1  of its time on all ranks
--   last_rank    bigint   the rank that caused most of the waiting; null when no rank was last alone
--   last_share   double   0..1  of the waiting, that this rank caused
WITH by_rank AS (
  SELECT
    rep, peers, name, group_name, rank,
    CAST(sum(caused_ns) AS BIGINT) AS caused_ns
  FROM comm_match
  GROUP BY ALL
),

worst AS (
  SELECT *
  FROM by_rank
  QUALIFY row_number() OVER (PARTITION BY rep, peers, name, group_name ORDER BY caused_ns DESC, rank ASC) = 1
),

summed AS (
  SELECT
    rep, peers, name, group_name,
    min(kind) AS kind,
    max(ranks) AS ranks,
    count(DISTINCT position) AS steps,
    count(DISTINCT position * 1000000 + place) AS events,
    median(least_ns) AS transfer_ns,
    CAST(sum(waiting_ns) AS BIGINT) AS waiting_ns,
    CAST(sum(dur_ns) AS BIGINT) AS all_ns
  FROM comm_match
  GROUP BY ALL
),

placed AS (
  SELECT
    summed.*,
    CASE WHEN worst.caused_ns > 0 THEN worst.rank END AS last_rank,
    worst.caused_ns,
    row_number() OVER (
      PARTITION BY summed.rep ORDER BY summed.waiting_ns DESC, summed.name ASC, summed.group_name ASC, summed.peers ASC
    ) AS place
  FROM summed
  INNER JOIN worst USING (rep, peers, name, group_name)
)

SELECT
  rep, place, peers, name, group_name, kind, ranks, steps, events, transfer_ns, waiting_ns,
  waiting_ns / nullif(all_ns, 0) AS wait_share,
  last_rank,
  CASE WHEN last_rank IS NOT NULL THEN caused_ns / nullif(waiting_ns, 0) END AS last_share
FROM placed
WHERE place <= $top
ORDER BY rep, place

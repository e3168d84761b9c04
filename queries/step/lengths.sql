-- How many training steps took how long, and what the machine did meanwhile.
--
-- Steps whose time counts, warm-up left out. CPU is that of the sampled interval in which a step ends. Of a step with
-- several batches the bytes are those of all, where each was weighed.
--
-- Reads: cpu_use?, fetch?, train_step
-- Ranks: apart
-- Gives, one row per (rep, rank, bin), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   bin              bigint   of lengths that differ by less than a twentieth; higher ones are longer
--   steps            bigint   steps
--   total_ns         bigint   ns     their summed length
--   median_ns        double   ns     their median length
--   wait_ns          bigint   ns     their time inside the dataset iterator; null when nothing was fetched
--   place            double   0..1   mean position in the run
--   own_cores        double   cores  mean CPU of the rank's processes; null when not sampled
--   delay_cores      double   cores  mean of its threads that were ready to run, but had no CPU; null when not known
--   neighbour_cores  double   cores  mean CPU of other programs; null when not sampled
--   input_bytes      double   bytes  mean data of the batches in it, of the steps whose batches were weighed; else null
WITH weighed AS (
  SELECT
    rep, rank, step,
    CASE WHEN bool_and(bytes IS NOT NULL) THEN sum(bytes) END AS input_bytes
  FROM "fetch"
  WHERE step IS NOT NULL
  GROUP BY ALL
),

placed AS (
  SELECT
    rep, rank, step, end_ns, dur_ns, fetch_wait_ns,
    CAST(floor(ln(nullif(dur_ns, 0)) / 0.05e0) AS BIGINT) AS bin,
    (row_number() OVER (PARTITION BY rep, rank ORDER BY step ASC) - 0.5e0)
    / nullif(count(*) OVER (PARTITION BY rep, rank), 0) AS place
  FROM train_step
  WHERE timed AND kind = 'train' AND dur_ns > 0
),

used AS (
  SELECT
    rep, rank, start_ns, end_ns,
    sum(CASE WHEN part NOT IN ('launcher', 'other_rank', 'profiler', 'neighbour') THEN cpu_ns ELSE 0 END)
    / nullif(end_ns - start_ns, 0) AS own_cores,
    sum(wait_ns) / nullif(end_ns - start_ns, 0) AS delay_cores,
    sum(CASE WHEN part = 'neighbour' THEN cpu_ns ELSE 0 END) / nullif(end_ns - start_ns, 0) AS neighbour_cores
  FROM cpu_use
  GROUP BY rep, rank, start_ns, end_ns
),

sampled AS (
  SELECT
    placed.rep, placed.rank, placed.bin, placed.dur_ns, placed.fetch_wait_ns, placed.place, weighed.input_bytes,
    used.own_cores, used.delay_cores, used.neighbour_cores
  FROM placed
  ASOF LEFT JOIN used ON placed.rep = used.rep AND placed.rank = used.rank AND placed.end_ns > used.start_ns
  LEFT JOIN weighed ON placed.rep = weighed.rep AND placed.rank = weighed.rank AND placed.step = weighed.step
)

SELECT
  rep, rank, bin,
  count(*) AS steps,
  CAST(sum(dur_ns) AS BIGINT) AS total_ns,
  median(dur_ns) AS median_ns,
  CAST(sum(fetch_wait_ns) AS BIGINT) AS wait_ns,
  list_sum(list_sort(list(place))) / nullif(count(*), 0) AS place,
  list_sum(list_sort(list(own_cores))) / nullif(count(own_cores), 0) AS own_cores,
  list_sum(list_sort(list(delay_cores))) / nullif(count(delay_cores), 0) AS delay_cores,
  list_sum(list_sort(list(neighbour_cores))) / nullif(count(neighbour_cores), 0) AS neighbour_cores,
  list_sum(list_sort(list(input_bytes))) / nullif(count(input_bytes), 0) AS input_bytes
FROM sampled
GROUP BY ALL
ORDER BY rep, rank, bin

-- Time that some steps of each rank take up, from the start of the first of them to the end of the last.
--
-- Reads: step
-- Takes:
--   $first  bigint  the first step
--   $last   bigint  the last step
-- Gives, one row per (rep, rank), in that order:
--   rep         bigint  repetition
--   rank        bigint  process rank
--   first_step  bigint  the first of them that there is
--   last_step   bigint  the last of them that there is
--   start_ns    bigint  ns  start
--   end_ns      bigint  ns  end
SELECT
  rep, rank,
  min(step) AS first_step,
  max(step) AS last_step,
  min(start_ns) AS start_ns,
  max(end_ns) AS end_ns
FROM step
WHERE step BETWEEN $first AND $last
GROUP BY ALL
ORDER BY rep, rank

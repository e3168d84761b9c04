-- What the suggested changes would have saved: rank-hours x (1 - 1 / predicted speed-up), summed over the runs.
--
-- Of each run that its data pipeline leads the advice with a predicted gain counts, if that is above 1. The bounds are
-- sums of bounds: as if every prediction erred to the same side.
--
-- Reads: fleet_run
-- Takes:
--   $top  bigint  how many
-- Gives, one row per (place), in that order:
--   place        bigint   1 saves the most
--   advice       varchar  code of the suggestion
--   parameter    varchar  what it changes; null when that is no parameter
--   op_type      varchar  type of the operator
--   op_name      varchar  what it does; null when it has no name
--   code         varchar  file:line of the call to edit, else of the operator's code; null when not known
--   runs         bigint   runs it is suggested for
--   rank_hours   double   h  training steps of all their ranks
--   saved_hours  double   h  of that, saved as predicted
--   least_hours  double   h  lower bound of saved_hours; null when none is known
--   most_hours   double   h  upper bound of saved_hours; null when none is known
--   median_gain  double   median of the predicted speed-ups
--   all_hours    double   h  saved_hours of all suggestions, also of those that are not listed
WITH saved AS (
  SELECT
    *,
    coalesce(call, code) AS place_of_edit,
    rank_hours * (1 - 1 / nullif(gain, 0)) AS run_hours,
    rank_hours * (1 - 1 / nullif(CASE WHEN gain_low < 1 THEN 1 ELSE gain_low END, 0)) AS run_least_hours,
    rank_hours * (1 - 1 / nullif(gain_high, 0)) AS run_most_hours
  FROM fleet_run
  WHERE gain > 1 AND rank_hours IS NOT NULL AND cause IN ('input_bound', 'shared_cpu', 'interpreter_lock', 'balanced')
),

by_fix AS (
  SELECT
    advice, parameter, op_type, op_name,
    place_of_edit AS code,
    count(*) AS runs,
    sum(rank_hours) AS rank_hours,
    sum(run_hours) AS saved_hours,
    CASE WHEN count(run_least_hours) = count(*) THEN sum(run_least_hours) END AS least_hours,
    CASE WHEN count(run_most_hours) = count(*) THEN sum(run_most_hours) END AS most_hours,
    median(gain) AS median_gain
  FROM saved
  GROUP BY ALL
),

placed AS (
  SELECT
    *,
    sum(saved_hours) OVER () AS all_hours,
    row_number() OVER (
      ORDER BY saved_hours DESC, advice ASC, parameter ASC, op_type ASC, op_name ASC, code ASC
    ) AS place
  FROM by_fix
)

SELECT
  place, advice, parameter, op_type, op_name, code, runs, rank_hours, saved_hours, least_hours, most_hours,
  median_gain, all_hours
FROM placed
WHERE place <= $top
ORDER BY place

-- The runs of a fleet: what is known of each, over its repetitions and ranks.
--
-- Hours are of ranks: an hour of eight accelerators is eight hours. What a run does not say is null.
--
-- Reads: fleet_rank
-- Gives, one row per (run):
--   run              varchar  folder of the run
--   run_id           varchar  its id; null when its manifest is damaged
--   state            varchar  complete | partial | failed | running | damaged
--   problem          varchar  why it is not complete; null when it is
--   started_at       varchar  when it began, in UTC
--   week             varchar  the Monday of that week
--   workload         varchar  name of what was run
--   source           varchar  collect | profile | import:KIND
--   machine          varchar  class of the machine
--   conditions       varchar  hash of machine, versions and settings
--   hosts            bigint   hosts that are known
--   revision         varchar  commit of the training's code
--   mindspore        varchar  version of MindSpore
--   reps             bigint   repetitions
--   ranks            bigint   ranks
--   steps            bigint   training steps of all ranks
--   median_step_ns   double   ns    median step of the slowest rank, median of the repetitions
--   rank_hours       double   h     training steps of all ranks; null when none was seen
--   wait_hours       double   h     of that, inside the dataset iterator
--   data_wait_share  double   0..1  of the rank that waits longest
--   rss_bytes        bigint   bytes  largest resident set of a process
--   verdict          varchar  on the data: input_bound | consumer_bound | balanced | not_measured
--   op_type          varchar  type of the operator that limits
--   op_name          varchar  what it does
--   op_kind          varchar  cpu | wait | gil | lock_wait | burst | poll | host_saturated
--   call             varchar  file:line of the call that made it
--   code             varchar  file:line of its Python function or class
--   advice           varchar  code of the suggestion
--   parameter        varchar  what it changes
--   gain             double   predicted speed-up of the training
--   gain_low         double   its lower bound
--   gain_high        double   its upper bound
--   gain_most        double   speed-up that no cure of this operator exceeds
--   cause            varchar  code of what leads the verdict on the run
--   cause_detail     varchar  which, such as the part of the run; null when the code says all
--   cause_share      double   0..1  of the training's time that it costs; null when not known
WITH of_rep AS (
  SELECT
    run, rep,
    max(median_ns) FILTER (WHERE kind = 'train') AS train_ns,
    max(median_ns) AS any_ns
  FROM fleet_rank
  GROUP BY ALL
),

of_run AS (
  SELECT
    run,
    coalesce(median(train_ns), median(any_ns)) AS median_step_ns
  FROM of_rep
  GROUP BY run
)

SELECT
  run,
  min(run_id) AS run_id,
  min(state) AS state,
  min(problem) AS problem,
  min(started_at) AS started_at,
  min(week) AS week,
  min(workload) AS workload,
  min(source) AS source,
  min(machine) AS machine,
  min(conditions) AS conditions,
  count(DISTINCT host) AS hosts,
  min(revision) AS revision,
  min(mindspore) AS mindspore,
  count(DISTINCT rep) AS reps,
  count(DISTINCT rank) AS ranks,
  CAST(sum(steps) AS BIGINT) AS steps,
  min(of_run.median_step_ns) AS median_step_ns,
  sum(training_ns) / 3.6e12 AS rank_hours,
  sum(wait_ns) / 3.6e12 AS wait_hours,
  max(data_wait_share) AS data_wait_share,
  max(rss_bytes) AS rss_bytes,
  min(verdict) AS verdict,
  min(op_type) AS op_type,
  min(op_name) AS op_name,
  min(op_kind) AS op_kind,
  min(call) AS call,
  min(code) AS code,
  min(advice) AS advice,
  min(parameter) AS parameter,
  min(gain) AS gain,
  min(gain_low) AS gain_low,
  min(gain_high) AS gain_high,
  min(gain_most) AS gain_most,
  min(cause) AS cause,
  min(cause_detail) AS cause_detail,
  min(cause_share) AS cause_share
FROM fleet_rank
INNER JOIN of_run USING (run)
GROUP BY run

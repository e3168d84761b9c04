-- Which stage of each training pipeline limits, by which rule, of which kind, and how sure that is.
--
-- gil: Python code holds the interpreter's lock most of the time and another operator uses it more than the slowest
-- one, or the loop waits at most 0.20 though the pipeline's Python holds the lock: the loop's own work waits for it.
-- consumer: the loop waits less than 0.05 of the time, or it has the highest utilisation, waits at most 0.20, and no
-- operator that is used at least 0.2 stalls now and then. When Python holds the lock at least 0.25 of the time, its
-- operator comes next.
-- utilisation: the stage with the highest one, at least 0.8. untimed: no timed stage is that busy, and the largest drop
-- in queue fill is at one without times. contention: none is busy, but one that is used at least 0.2 uses the most CPU,
-- at least 0.3 cores, unless the one with the highest utilisation has the largest drop as well. weak: none of these;
-- the highest utilisation, or without times the largest drop.
--
-- Reads: load_host, load_kind, pipeline_load, pipeline_pace
-- Takes:
--   $cores  double  of the machine; 0 when not known
-- Gives, one row per (rep, rank, pipeline_key, position), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   position      bigint   1 is the stage that limits
--   op_id         bigint   operator; -1 is the training loop
--   op_type       varchar  such as MapOp; consumer is the training loop
--   name          varchar  what it does
--   verdict       varchar  input_bound | consumer_bound | balanced (of the pipeline)
--   rule          varchar  that chose the first stage: consumer | gil | utilisation | untimed | contention | weak
--   kind          varchar  cpu | wait | gil | burst | poll | host_saturated, of this stage; null when it cannot be told
--   wait_share    double   0..1  of the loop's time, spent waiting for batches
--   batches       bigint   batches in the window
--   utilisation   double   of this stage; null when not measured
--   drop_ratio    double   -1..1  of this stage
--   margin        double   utilisation of the first stage over the next one's; null when one is not measured
--   holds_lock    boolean  the loop comes first, but the operator behind it holds the interpreter's lock
--   drop_id       bigint   operator with the largest drop in queue fill; null without queue samples
--   gil_share     double   0..1  of the time Python code held the interpreter's lock; null when not measured
--   doubts        varchar  codes of what is missing for high confidence, each with a comma behind it: not_busy |
--                          close | no_queues | queues_elsewhere | few_batches | holds_lock | other_load |
--                          indirect | none_busy; empty when nothing is
WITH fact AS (
  SELECT
    pipeline_load.rep,
    pipeline_load.rank,
    pipeline_load.pipeline_key,
    pipeline_load.op_id,
    pipeline_load.op_type,
    pipeline_load.name,
    pipeline_load.below_concat,
    pipeline_load.utilisation,
    pipeline_load.drop_ratio,
    pipeline_load.workers,
    pipeline_load.cores AS measured_cores,
    CASE
      WHEN pipeline_load.op_id >= 0 AND coalesce(pipeline_load.utilisation, 1.0e0) >= 0.2e0
        THEN coalesce(pipeline_load.cores, 0.0e0)
    END AS contending,
    load_kind.kind,
    load_kind.python_cores,
    pipeline_pace.wait_share,
    pipeline_pace.batches,
    load_host.idle_share,
    load_host.gil_share,
    coalesce(1.0e0 - load_host.idle_share - load_host.process_cores / nullif($cores, 0), 0.0e0) AS others_share
  FROM pipeline_load
  INNER JOIN load_kind
    ON
      pipeline_load.rep = load_kind.rep
      AND pipeline_load.rank = load_kind.rank
      AND pipeline_load.pipeline_key = load_kind.pipeline_key
      AND pipeline_load.op_id = load_kind.op_id
  INNER JOIN pipeline_pace
    ON
      pipeline_load.rep = pipeline_pace.rep
      AND pipeline_load.rank = pipeline_pace.rank
      AND pipeline_load.pipeline_key = pipeline_pace.pipeline_key
  LEFT JOIN load_host
    ON
      pipeline_load.rep = load_host.rep
      AND pipeline_load.rank = load_host.rank
      AND pipeline_load.pipeline_key = load_host.pipeline_key
),

ordered AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY rep, rank, pipeline_key
      ORDER BY CASE WHEN op_id >= 0 THEN utilisation END DESC NULLS LAST, op_id ASC
    ) AS by_utilisation,
    row_number() OVER (
      PARTITION BY rep, rank, pipeline_key
      ORDER BY CASE WHEN NOT below_concat THEN drop_ratio END DESC NULLS LAST, op_id ASC
    ) AS by_drop,
    row_number() OVER (PARTITION BY rep, rank, pipeline_key ORDER BY python_cores DESC, op_id ASC) AS by_python,
    row_number() OVER (
      PARTITION BY rep, rank, pipeline_key ORDER BY contending DESC NULLS LAST, op_id ASC
    ) AS by_cores
  FROM fact
),

summary AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    max(wait_share) AS wait_share,
    max(batches) AS batches,
    bool_or(idle_share < 0.1e0 AND others_share >= 0.25e0) AS is_saturated,
    max(gil_share) AS gil_share,
    max(op_id) FILTER (WHERE by_utilisation = 1 AND op_id >= 0) AS busy_id,
    coalesce(max(utilisation) FILTER (WHERE op_id >= 0), 0.0e0) AS busy,
    max(python_cores) FILTER (WHERE by_utilisation = 1) AS busy_python_cores,
    max(op_id) FILTER (WHERE by_drop = 1 AND drop_ratio IS NOT NULL) AS drop_id,
    max(drop_ratio) FILTER (WHERE by_drop = 1) AS drop_ratio,
    max(CASE WHEN utilisation IS NULL THEN 1 ELSE 0 END) FILTER (WHERE by_drop = 1) AS drop_untimed,
    sum(python_cores) AS python_cores,
    max(op_id) FILTER (WHERE by_python = 1) AS python_id,
    max(op_id) FILTER (WHERE by_cores = 1) AS cores_id,
    max(contending) FILTER (WHERE by_cores = 1) AS cores,
    max(utilisation) FILTER (WHERE kind = 'burst' AND utilisation >= 0.2e0) AS bursty
  FROM ordered
  GROUP BY rep, rank, pipeline_key
),

ruled AS (
  SELECT
    *,
    CASE
      WHEN wait_share <= 0.2e0 AND python_cores >= 0.6e0 AND gil_share >= 0.4e0 THEN 'gil'
      WHEN wait_share < 0.05e0 THEN 'consumer'
      WHEN
        (python_cores >= 0.85e0 OR (python_cores >= 0.6e0 AND gil_share >= 0.6e0))
        AND busy_python_cores < 0.5e0 * python_cores
        AND coalesce(gil_share >= 0.25e0, python_cores <= 1.3e0)
        THEN 'gil'
      WHEN busy >= 0.8e0 AND busy >= 1.0e0 - wait_share THEN 'utilisation'
      WHEN drop_untimed = 1 AND drop_ratio >= 0.4e0 AND drop_id >= 0 THEN 'untimed'
      WHEN wait_share <= 0.2e0 AND bursty IS NULL AND 1.0e0 - wait_share >= busy THEN 'consumer'
      WHEN busy >= 0.8e0 THEN 'utilisation'
      WHEN cores >= 0.3e0 AND NOT coalesce(busy_id = drop_id AND drop_ratio >= 0.4e0, FALSE) THEN 'contention'
      ELSE 'weak'
    END AS rule
  FROM summary
),

picked AS (
  SELECT
    *,
    rule = 'consumer' AND coalesce(gil_share >= 0.25e0 AND python_cores >= 0.3e0, FALSE) AS holds_lock,
    CASE rule
      WHEN 'consumer' THEN -1
      WHEN 'gil' THEN python_id
      WHEN 'untimed' THEN drop_id
      WHEN 'contention' THEN cores_id
      WHEN 'utilisation' THEN busy_id
      ELSE coalesce(CASE WHEN busy > 0 THEN busy_id END, drop_id)
    END AS chosen_id,
    CASE
      WHEN
        wait_share >= 0.05e0
        AND rule IN ('consumer', 'utilisation')
        AND greatest(busy, 1.0e0 - wait_share) < 1.15e0 * least(busy, 1.0e0 - wait_share)
        THEN 'balanced'
      WHEN rule = 'gil' AND wait_share <= 0.2e0 THEN 'balanced'
      WHEN rule = 'consumer' THEN 'consumer_bound'
      ELSE 'input_bound'
    END AS verdict
  FROM ruled
),

-- The first stage, then the others by utilisation, those without times by their drop.
placed AS (
  SELECT
    fact.rep,
    fact.rank,
    fact.pipeline_key,
    fact.op_id,
    fact.op_type,
    fact.name,
    fact.kind,
    fact.utilisation,
    fact.drop_ratio,
    fact.measured_cores AS cores,
    fact.workers,
    picked.verdict,
    picked.rule,
    picked.wait_share,
    picked.batches,
    picked.drop_id,
    picked.is_saturated,
    picked.gil_share,
    picked.chosen_id,
    picked.busy,
    picked.python_cores AS all_python_cores,
    picked.holds_lock,
    picked.drop_ratio AS chosen_drop,
    row_number() OVER (
      PARTITION BY fact.rep, fact.rank, fact.pipeline_key
      ORDER BY
        CASE
          WHEN fact.op_id = picked.chosen_id THEN 0
          WHEN picked.holds_lock AND fact.op_id = picked.python_id THEN 1
          ELSE 2
        END,
        coalesce(fact.utilisation, fact.drop_ratio) DESC NULLS LAST,
        fact.op_id
    ) AS position
  FROM fact
  INNER JOIN picked
    ON fact.rep = picked.rep AND fact.rank = picked.rank AND fact.pipeline_key = picked.pipeline_key
),

lead_stage AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    max(utilisation) FILTER (WHERE position = 1) AS first_utilisation,
    max(utilisation) FILTER (WHERE position = 1) - max(utilisation) FILTER (WHERE position > 1) AS margin
  FROM placed
  GROUP BY rep, rank, pipeline_key
),

doubted AS (
  SELECT
    placed.*,
    lead_stage.margin,
    CASE
      WHEN lead_stage.first_utilisation >= 0.8e0 OR placed.rule IN ('gil', 'untimed') THEN '' ELSE 'not_busy, '
    END
    || CASE
      WHEN lead_stage.margin > 0.2e0 OR placed.rule IN ('gil', 'untimed') OR placed.wait_share < 0.05e0 THEN ''
      ELSE 'close, '
    END
    || CASE
      WHEN placed.drop_id = placed.chosen_id OR placed.rule = 'gil' OR placed.wait_share < 0.05e0 THEN ''
      WHEN placed.drop_id IS NULL THEN 'no_queues, '
      ELSE 'queues_elsewhere, '
    END
    || CASE WHEN placed.batches >= 20 THEN '' ELSE 'few_batches, ' END
    || CASE WHEN placed.holds_lock THEN 'holds_lock, ' ELSE '' END
    || CASE WHEN placed.is_saturated THEN 'other_load, ' ELSE '' END
    || CASE
      WHEN placed.rule = 'untimed' AND NOT (placed.chosen_drop >= 0.8e0 AND placed.busy > 0 AND placed.busy < 0.5e0)
        THEN 'indirect, '
      WHEN placed.rule = 'gil' AND placed.gil_share IS NULL THEN 'indirect, '
      ELSE ''
    END
    || CASE WHEN placed.rule IN ('contention', 'weak') THEN 'indirect, none_busy, ' ELSE '' END
      AS doubts
  FROM placed
  INNER JOIN lead_stage
    ON placed.rep = lead_stage.rep AND placed.rank = lead_stage.rank AND placed.pipeline_key = lead_stage.pipeline_key
)

SELECT
  rep,
  rank,
  pipeline_key,
  position,
  op_id,
  op_type,
  name,
  verdict,
  rule,
  CASE
    WHEN position = 1 AND rule = 'gil' THEN 'gil'
    WHEN kind = 'cpu' AND is_saturated THEN 'host_saturated'
    WHEN position = 1 AND rule = 'untimed' AND kind IS NULL AND cores IS NOT NULL
      THEN CASE WHEN cores >= 0.5e0 * workers THEN 'cpu' ELSE 'wait' END
    ELSE kind
  END AS kind,
  wait_share,
  batches,
  utilisation,
  drop_ratio,
  margin,
  holds_lock,
  drop_id,
  gil_share,
  doubts
FROM doubted
ORDER BY rep, rank, pipeline_key, position

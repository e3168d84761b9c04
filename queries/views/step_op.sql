-- Executions of operators in the steps of step_part, with the time that counts as their own.
--
-- On a rank that has a device, an operator of the host has the time of what it launched there, and is left out when
-- that is nothing; what nobody is known to have launched stands for itself. What op_mark has is no operator.
--
-- Reads: op, op_mark?, step_part
-- Gives, one row per (rep, rank, op_id, start_ns, track):
--   rep       bigint   repetition
--   rank      bigint   process rank
--   step      bigint   position among all steps of the rank
--   op_id     bigint   the operator
--   start_ns  bigint   ns  start
--   track     varchar  stream, thread or device
--   own_ns    bigint   ns  without the operators it called; children included where that is not known
WITH device_rank AS (
  SELECT
    rep, rank,
    TRUE AS has_device
  FROM op
  WHERE side = 'device' AND step IS NOT NULL
  GROUP BY ALL
),

owned AS (
  SELECT
    rep, rank, step, op.op_id, op.start_ns, op.track,
    device_rank.has_device IS NOT NULL AS by_device,
    CASE
      WHEN device_rank.has_device IS NULL OR op.side IS NULL THEN coalesce(op.self_ns, op.dur_ns)
      WHEN op.side = 'host' THEN coalesce(op.device_self_ns, 0)
      WHEN op.parent_id IS NULL THEN op.dur_ns
      ELSE 0
    END AS own_ns
  FROM op
  INNER JOIN step_part USING (rep, rank, step)
  LEFT JOIN device_rank USING (rep, rank)
)

SELECT
  rep, rank, owned.step, op_id, owned.start_ns, owned.track, owned.own_ns
FROM owned
ANTI JOIN op_mark USING (rep, rank, op_id)
WHERE NOT owned.by_device OR owned.own_ns > 0

-- Operators as the source describes them: what a choice by name, type or data type is made from.
--
-- Reads: op_info
-- Gives, one row per (rep, rank, op_id), in that order:
--   rep         bigint   repetition
--   rank        bigint   process rank
--   op_id       bigint   the operator
--   opr_id      varchar  its id in the source
--   name        varchar  full name, scope included
--   type        varchar  operator type
--   device      varchar  where it ran
--   in_types    varchar  input types as text
--   in_shapes   varchar  input shapes as text
--   out_shapes  varchar  output shapes as text
SELECT
  rep, rank, op_id,
  source_id AS opr_id,
  name, type, device, in_types, in_shapes, out_shapes
FROM op_info
ORDER BY rep, rank, op_id

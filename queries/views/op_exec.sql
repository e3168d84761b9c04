-- Executions of operators, with what the operator is and the kind of step it ran in.
--
-- Reads: op, op_info?, step?
-- Gives, one row per (rep, rank, op_id, start_ns, track):
--   rep              bigint   repetition
--   rank             bigint   process rank
--   op_id            bigint   the operator
--   step             bigint   the step it ran in; null when it is not known
--   kind             varchar  of that step: warmup | train | eval; null when the step is not known
--   in_window        boolean  of that step
--   start_ns         bigint   ns     start
--   dur_ns           bigint   ns     duration, children included
--   self_ns          bigint   ns     duration without the operators it called
--   wait_ns          bigint   ns     time between launch and start, where the source has it
--   track            varchar  stream, thread or device
--   side             varchar  device (it ran there) | host (it was launched there); null when the source has one
--   exact_dur_ns     double   ns     dur_ns before it was rounded; null when the source has whole ns
--   exact_wait_ns    double   ns     wait_ns before it was rounded; null when the source has whole ns
--   name             varchar  full name, scope included
--   type             varchar  operator type, such as Conv2D
--   scope            varchar  the path in front of the last part of the name
--   phase            varchar  forward | backward | gradients | optimizer | after | communication | data | other
--   device           varchar  where it ran, such as CPU
--   in_shapes        varchar  input shapes and types as text
--   out_shapes       varchar  output shapes and types as text
--   flops            bigint   floating-point operations of one execution
--   bytes            bigint   bytes  moved by one execution
--   stack_id         bigint   source location
--   category         varchar  kind of event in the source, such as cpu_op, kernel; null when it has none
--   occupancy_ratio  double   0..1   of a kernel, by the source's estimate; null when not known
SELECT
  rep, rank, op.op_id, op.step, step.kind, step.in_window, op.start_ns, op.dur_ns, op.self_ns, op.wait_ns, op.track,
  op.side, op.exact_dur_ns, op.exact_wait_ns, op_info.name, op_info.type, op_info.scope, op_info.phase, op_info.device,
  op_info.in_shapes, op_info.out_shapes, op_info.flops, op_info.bytes, op_info.stack_id, op_info.category,
  op.occupancy_ratio
FROM op
LEFT JOIN op_info USING (rep, rank, op_id)
LEFT JOIN step USING (rep, rank, step)

-- What ranks are compared by: how long each phase of a step took on each rank, from the best source that they share.
--
-- Sources, the first of those that most ranks have (at least 5 steps count more than fewer): parts, from recorded
-- operators (view step_part); split, the profiler's own division (view rank_split); trace, phases of the step less the
-- communication inside them (view comm_part); phase, phases whose communication was not recorded.
--
-- Reads: phase_offer, phase_source, rank_peer
-- Kept: yes
-- Gives, one row per (rep, rank, position, phase):
--   rep       bigint   repetition
--   peers     bigint   group of ranks that do the same work, see rank_peer
--   rank      bigint   process rank
--   position  bigint   the step's number in the source, else among the rank's training steps
--   source    varchar  parts | split | trace | phase
--   phase     varchar  own (the step without its exposed communication; of trace, without any) | until_bp (up to BP) |
--                      step | communication (exposed; of trace, all) | parts of own: data_wait | forward | backward |
--                      optimizer | other | host_gap | computing | free | forward_backward | tail | compute
--   phase_ns  bigint   ns    its length
--   step_ns   bigint   ns    length of the step
SELECT
  rep, rank_peer.peers, rank, phase_offer.position, source, phase_offer.phase, phase_offer.phase_ns, phase_offer.step_ns
FROM phase_offer
INNER JOIN phase_source USING (rep, source)
INNER JOIN rank_peer USING (rep, rank)

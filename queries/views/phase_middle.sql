-- The middle of all ranks in a phase of a step: the three values among which the median of the others lies, whichever
-- rank is left out.
--
-- Steps that at least half of the ranks have, and more than one.
--
-- Reads: phase_group, rank_phase
-- Kept: yes
-- Gives, one row per (rep, peers, position, phase):
--   rep        bigint   repetition
--   peers      bigint   group of ranks that do the same work, see rank_peer
--   position   bigint   the step's number in the source, else among the rank's training steps
--   phase      varchar  see rank_phase
--   ranks      bigint   ranks of the group
--   is_even    boolean  an even number of them has the phase in this step
--   first_ns   bigint   ns  the lower one; null when there is none
--   second_ns  bigint   ns  the middle one, of an even number the lower of two
--   third_ns   bigint   ns  the upper one
WITH met AS (
  SELECT
    rep, peers, position, phase,
    count(*) AS met,
    list_sort(list(phase_ns)) AS sorted_ns
  FROM rank_phase
  GROUP BY ALL
)

SELECT
  rep, peers, met.position, met.phase, phase_group.ranks,
  met.met % 2 = 0 AS is_even,
  met.sorted_ns[met.met // 2] AS first_ns,
  met.sorted_ns[met.met // 2 + 1] AS second_ns,
  met.sorted_ns[met.met // 2 + 2] AS third_ns
FROM met
INNER JOIN phase_group USING (rep, peers)
WHERE met.met > 1 AND 2 * met.met >= phase_group.ranks

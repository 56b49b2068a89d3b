-- waiting: How long each rank waited for others in collectives.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- empty: no range is a collective, with a group and a sequence, as marey.torch and MPI programs record them (see waiting_functions)
-- Ranges of one run with the same group and sequence are one collective. A rank waits from its own start to the last
-- start. Starts are times since the start of the run, as exact as the clocks of the hosts.
with
-- include met
select
    r.run, coalesce(r.rank, 0) as rank, count(*) as collectives,
    cast(sum(m.last_ns - r.run_ns) as bigint) as waiting_ns,
    cast(sum(r.duration_ns) as bigint) as in_collectives_ns,
    max(m.last_ns - r.run_ns) as longest_wait_ns
from ranges as r
join met as m on m.run = r.run and m.team = r.group and m.sequence = r.sequence
where r.run like :run and r.sequence is not null
group by r.run, coalesce(r.rank, 0)
order by waiting_ns desc, r.run, rank
limit :top

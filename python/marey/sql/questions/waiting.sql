-- waiting: How long each rank waited for others in collectives.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- Ranges of one run with the same group and sequence are one collective. A rank waits from its own start to the last
-- start. Starts are times since the start of the run, as exact as the clocks of the hosts.
with arrived as (
    select r.run as run, r.group as team, r.sequence as sequence, coalesce(r.rank, 0) as rank,
        min(r.run_ns) as start_ns, max(r.run_ns + r.duration_ns) as end_ns
    from ranges as r
    where r.run like :run and r.sequence is not null
    group by r.run, r.group, r.sequence, coalesce(r.rank, 0)),
met as (
    select run, team, sequence, rank, start_ns, end_ns,
        max(start_ns) over (partition by run, team, sequence) as last_ns
    from arrived)
select
    run, rank, count(*) as collectives,
    cast(sum(last_ns - start_ns) as bigint) as waiting_ns,
    cast(sum(end_ns - start_ns) as bigint) as in_collectives_ns,
    max(last_ns - start_ns) as longest_wait_ns
from met
group by run, rank
order by waiting_ns desc, run, rank
limit :top

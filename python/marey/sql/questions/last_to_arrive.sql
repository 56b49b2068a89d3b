-- last_to_arrive: The ranks that others waited for: how often each came last to a collective, and how late.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter permille = 10: Leave out ranks that were late for less of the run's time; 0 shows all
-- parameter top = 20: Rows to show
-- empty: no rank was late in a collective: a range with a group and a sequence, as marey.torch and MPI programs record them
-- Ranges of one run with the same group and sequence are one collective. The last to arrive is the rank with the latest
-- start, of equal ones that with the lowest number. It is late by the time from the median start to its own.
with
-- include met,
lasting as (
    select run, count(*) as collectives, max(end_ns) - min(first_ns) as time_ns from met group by run)
select
    m.run, m.last_rank as rank, count(*) as times_last, max(l.collectives) as collectives,
    cast(sum(m.late_ns) as bigint) as late_ns,
    cast(floor(sum(m.late_ns) * 1000 / max(l.time_ns)) as bigint) as permille_of_run,
    cast(max(m.late_ns) as bigint) as latest_ns,
    min(nullif(m.last_step, -1)) as first_step, max(nullif(m.last_step, -1)) as last_step
from met as m
join lasting as l on l.run = m.run
where m.lowest_rank < m.highest_rank
group by m.run, m.last_rank
having sum(m.late_ns) * 1000 >= max(l.time_ns) * :permille
order by late_ns desc, m.run, rank
limit :top

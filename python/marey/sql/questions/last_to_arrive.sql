-- last_to_arrive: The ranks that others waited for: how often each came last to a collective, and how late.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter permille = 10: Leave out ranks that were late for less of the run's time; 0 shows all
-- parameter top = 20: Rows to show
-- Ranges of one run with the same group and sequence are one collective. The last to arrive is the rank with the latest
-- start, of equal ones that with the highest number. It is late by the time from the median start to its own.
with arrived as (
    select r.run as run, r.group as team, r.sequence as sequence, coalesce(r.rank, 0) as rank,
        min(r.step) as step, min(r.run_ns) as start_ns, max(r.run_ns + r.duration_ns) as end_ns
    from ranges as r
    where r.run like :run and r.sequence is not null
    group by r.run, r.group, r.sequence, coalesce(r.rank, 0)),
ordered as (
    select run, team, sequence, rank, step, start_ns,
        row_number() over (partition by run, team, sequence order by start_ns desc, rank desc) as place
    from arrived),
met as (
    select run, team, sequence, floor(median(start_ns)) as median_ns, count(*) as ranks
    from arrived group by run, team, sequence),
lasting as (
    select run, max(end_ns) - min(start_ns) as time_ns from arrived group by run),
counted as (
    select run, count(*) as collectives from met group by run)
select
    o.run, o.rank, count(*) as times_last, max(c.collectives) as collectives,
    cast(sum(o.start_ns - m.median_ns) as bigint) as late_ns,
    cast(floor(sum(o.start_ns - m.median_ns) * 1000 / max(l.time_ns)) as bigint) as permille_of_run,
    cast(max(o.start_ns - m.median_ns) as bigint) as latest_ns,
    min(o.step) as first_step, max(o.step) as last_step
from ordered as o
join met as m on m.run = o.run and m.team = o.team and m.sequence = o.sequence
join lasting as l on l.run = o.run
join counted as c on c.run = o.run
where o.place = 1 and m.ranks > 1
group by o.run, o.rank
having sum(o.start_ns - m.median_ns) * 1000 >= max(l.time_ns) * :permille
order by late_ns desc, o.run, o.rank
limit :top

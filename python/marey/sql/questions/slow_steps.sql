-- slow_steps: The steps that took longest, compared with the median step of their run, and the rank that took longest.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- A step is a range of scope step, or one named ProfilerStep#n. A step of a run lasts as long as on its slowest rank.
with each as (
    select run, step, coalesce(rank, 0) as rank, max(duration_ns) as duration_ns
    from ranges
    where run like :run and step is not null and (scope = 'step' or name like 'ProfilerStep#%')
    group by run, step, coalesce(rank, 0)),
longest as (
    select run, step, max(duration_ns) as duration_ns, min(duration_ns) as shortest_ns, count(*) as ranks
    from each group by run, step),
usual as (
    select run, median(duration_ns) as median_ns from longest group by run)
select
    l.run, l.step, min(e.rank) as slowest_rank, l.ranks, l.duration_ns, l.shortest_ns,
    cast(floor(u.median_ns) as bigint) as median_ns,
    cast(floor(l.duration_ns - u.median_ns) as bigint) as over_median_ns
from longest as l
join usual as u on u.run = l.run
join each as e on e.run = l.run and e.step = l.step and e.duration_ns = l.duration_ns
group by l.run, l.step, l.ranks, l.duration_ns, l.shortest_ns, u.median_ns
order by over_median_ns desc, l.run, l.step
limit :top

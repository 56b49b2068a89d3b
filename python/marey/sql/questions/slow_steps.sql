-- slow_steps: The steps that took longest, compared with the median step of their run, and the rank that held them up.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- empty: no range is a step, as prof.step() records it (see longest_calls)
-- A step is a range of scope step, or one named ProfilerStep#n. A step of a run lasts as long as on its slowest rank.
-- Time between two steps is in none; `marey ranks` adds it to the next one.
-- Ranks that wait for another one take as long as it does, so the slowest rank is the one with the most time of its own:
-- the step less its waiting in collectives, which is from its own start to the last start (see waiting).
with each as (
    select run, step, coalesce(rank, 0) as rank, max(duration_ns) as duration_ns
    from ranges
    where run like :run and step is not null and (scope = 'step' or name like 'ProfilerStep#%')
    group by run, step, coalesce(rank, 0)),
-- include met,
waited as (
    select r.run as run, r.step as step, coalesce(r.rank, 0) as rank, sum(m.last_ns - r.run_ns) as waiting_ns
    from ranges as r
    join met as m on m.run = r.run and m.team = r.group and m.sequence = r.sequence
    where r.run like :run and r.sequence is not null and r.step is not null
    group by r.run, r.step, coalesce(r.rank, 0)),
own as (
    select e.run, e.step, e.rank, e.duration_ns, e.duration_ns - coalesce(w.waiting_ns, 0) as own_ns
    from each as e left join waited as w on w.run = e.run and w.step = e.step and w.rank = e.rank),
placed as (
    select run, step, rank, own_ns,
        max(duration_ns) over (partition by run, step) as longest_ns,
        count(*) over (partition by run, step) as ranks,
        row_number() over (partition by run, step order by own_ns desc, rank) as place
    from own),
usual as (
    select run, median(longest_ns) as median_ns from placed where place = 1 group by run)
select
    p.run, p.step, p.rank as slowest_rank, p.ranks, p.longest_ns as duration_ns, cast(p.own_ns as bigint) as own_ns,
    cast(floor(u.median_ns) as bigint) as median_ns,
    cast(floor(p.longest_ns - u.median_ns) as bigint) as over_median_ns
from placed as p join usual as u on u.run = p.run
where p.place = 1
order by over_median_ns desc, p.run, p.step
limit :top

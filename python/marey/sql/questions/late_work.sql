-- late_work: What the ranks that came last did longer than others, and in which steps.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter permille = 10: Leave out names that took less of the late steps than this more than usual
-- parameter top = 20: Rows to show
-- In each step, the late rank is the one that was last to arrive by the most time in all. Its self time by name is
-- compared with the mean of all ranks in that step. Collectives do not count. Definitions are those of last_to_arrive.
with arrived as (
    select r.run as run, r.group as team, r.sequence as sequence, coalesce(r.rank, 0) as rank,
        min(r.step) as step, min(r.run_ns) as start_ns
    from ranges as r
    where r.run like :run and r.sequence is not null
    group by r.run, r.group, r.sequence, coalesce(r.rank, 0)),
ordered as (
    select run, team, sequence, step, rank, start_ns,
        row_number() over (partition by run, team, sequence order by start_ns desc, rank desc) as place
    from arrived),
met as (
    select run, team, sequence, floor(median(start_ns)) as median_ns from arrived group by run, team, sequence),
held as (
    select o.run, o.step, o.rank, sum(o.start_ns - m.median_ns) as late_ns
    from ordered as o join met as m on m.run = o.run and m.team = o.team and m.sequence = o.sequence
    where o.place = 1 and o.step is not null
    group by o.run, o.step, o.rank),
most as (
    select run, step, rank, row_number() over (partition by run, step order by late_ns desc, rank) as place
    from held),
late as (
    select run, step, rank from most where place = 1),
work as (
    select run, step, coalesce(rank, 0) as rank,
        case when name like 'ProfilerStep#%' then 'ProfilerStep' else name end as name, sum(self_ns) as self_ns
    from ranges
    where run like :run and step is not null and sequence is null
    group by run, step, coalesce(rank, 0), case when name like 'ProfilerStep#%' then 'ProfilerStep' else name end),
ranked as (
    select run, step, count(distinct rank) as ranks, sum(self_ns) as all_ns from work group by run, step),
usual as (
    select w.run, w.step, w.name, floor(sum(w.self_ns) / max(k.ranks)) as mean_ns
    from work as w join ranked as k on k.run = w.run and k.step = w.step
    group by w.run, w.step, w.name)
select
    l.run, l.rank, w.name, count(*) as steps, min(l.step) as first_step, max(l.step) as last_step,
    cast(sum(w.self_ns) as bigint) as self_ns,
    cast(sum(w.self_ns - u.mean_ns) as bigint) as more_than_usual_ns
from late as l
join work as w on w.run = l.run and w.step = l.step and w.rank = l.rank
join usual as u on u.run = w.run and u.step = w.step and u.name = w.name
join ranked as k on k.run = l.run and k.step = l.step
group by l.run, l.rank, w.name
having sum(w.self_ns - u.mean_ns) * 1000 >= sum(floor(k.all_ns / k.ranks)) * :permille
order by more_than_usual_ns desc, l.run, l.rank, w.name
limit :top

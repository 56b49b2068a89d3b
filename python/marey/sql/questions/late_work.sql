-- late_work: What the ranks that came last did longer than others, and in which steps.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter permille = 10: Leave out names that took less of the late steps than this more than usual
-- parameter top = 20: Rows to show
-- empty: no rank was late in a collective: a range with a group and a sequence, as marey.torch and MPI programs record them
-- In each step, the late rank is the one that was last to arrive by the most time in all. Its self time by name is
-- compared with the mean of all ranks in that step. Collectives do not count. Definitions are those of last_to_arrive.
with
-- include met,
held as (
    select run, last_step as step, last_rank as rank, sum(late_ns) as late_ns
    from met where last_step >= 0 group by run, last_step, last_rank),
most as (
    select run, step, rank, row_number() over (partition by run, step order by late_ns desc, rank) as place
    from held),
late as (
    select run, step, rank from most where place = 1),
ranked as (
    select run, step, count(distinct coalesce(rank, 0)) as ranks
    from ranges
    where run like :run and step is not null and (scope = 'step' or name like 'ProfilerStep#%')
    group by run, step),
work as (
    select
        l.run as run, l.step as step, l.rank as rank,
        case when r.name like 'ProfilerStep#%' then 'ProfilerStep' else r.name end as name,
        sum(r.self_ns) as all_ns,
        sum(case when coalesce(r.rank, 0) = l.rank then r.self_ns else 0 end) as self_ns,
        max(case when coalesce(r.rank, 0) = l.rank then 1 else 0 end) as is_done
    from ranges as r
    join late as l on l.run = r.run and l.step = r.step
    where r.run like :run and r.step is not null and r.sequence is null
    group by l.run, l.step, l.rank, case when r.name like 'ProfilerStep#%' then 'ProfilerStep' else r.name end),
compared as (
    select w.run as run, w.step as step, w.rank as rank, w.name as name, w.self_ns as self_ns, w.is_done as is_done,
        floor(w.all_ns / k.ranks) as mean_ns,
        floor(sum(w.all_ns) over (partition by w.run, w.step) / k.ranks) as mean_step_ns
    from work as w join ranked as k on k.run = w.run and k.step = w.step)
select
    run, rank, name, count(*) as steps, min(step) as first_step, max(step) as last_step,
    cast(sum(self_ns) as bigint) as self_ns,
    cast(sum(self_ns - mean_ns) as bigint) as more_than_usual_ns
from compared
where is_done = 1
group by run, rank, name
having sum(self_ns - mean_ns) * 1000 >= sum(mean_step_ns) * :permille
order by more_than_usual_ns desc, run, rank, name
limit :top

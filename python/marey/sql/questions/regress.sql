-- regress: Names that take more self time per step in new runs than in base runs.
-- parameter base = first: Base runs, as a pattern of LIKE; first: the first run by id
-- parameter new = last: New runs, as a pattern of LIKE; last: the last run by id
-- parameter percent = 5: Leave out smaller changes
-- parameter permille = 2: Leave out changes that are less of a base step
-- parameter top = 20: Rows to show
-- empty: no name got slower per step: this compares at least two runs of a lake, with steps as prof.step() records them
-- The run is the unit: a run's value is its self time by name and step of a rank. A name has become slower if the fastest
-- new run is slower than the slowest base run. Collectives are left out: their time is mostly waiting.
with bounds as (
    select min(run) as first_run, max(run) as last_run from _runs),
sides as (
    select r.run, case
        when r.run like :new or (:new = 'last' and r.run = b.last_run) then 'new'
        when r.run like :base or (:base = 'first' and r.run = b.first_run) then 'base' end as side
    from _runs as r cross join bounds as b),
named as (
    select run, case when name like 'ProfilerStep#%' then 'ProfilerStep' else name end as name,
        sum(self_ns) as self_ns, sum(duration_ns) as total_ns, count(*) as calls
    from ranges where sequence is null
    group by run, case when name like 'ProfilerStep#%' then 'ProfilerStep' else name end),
stepped as (
    select run, sum(case when name = 'ProfilerStep' then calls else 0 end) as steps,
        coalesce(sum(case when name = 'ProfilerStep' then total_ns end), sum(self_ns)) as all_ns
    from named group by run),
each as (
    select s.side, n.run, n.name, floor(n.self_ns / greatest(t.steps, 1)) as self_ns,
        floor(t.all_ns / greatest(t.steps, 1)) as step_ns
    from named as n join sides as s on s.run = n.run join stepped as t on t.run = n.run
    where s.side is not null),
compared as (
    select name,
        max(case when side = 'base' then self_ns end) as base_ns,
        max(case when side = 'base' then step_ns end) as base_step_ns,
        min(case when side = 'new' then self_ns end) as new_ns
    from each group by name)
select
    name, cast(coalesce(base_ns, 0) as bigint) as base_ns, cast(new_ns as bigint) as new_ns,
    cast(new_ns - coalesce(base_ns, 0) as bigint) as change_ns
from compared
where new_ns is not null
    and (new_ns - coalesce(base_ns, 0)) * 100 > coalesce(base_ns, 0) * :percent
    and (new_ns - coalesce(base_ns, 0)) * 1000 > (select max(step_ns) from each where side = 'base') * :permille
order by change_ns desc, name
limit :top

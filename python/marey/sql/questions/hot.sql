-- hot: The names with the most self time.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- empty: nothing was recorded in these runs
-- All steps count as one name. The total of a recursive function is that of its outermost calls.
select
    case when name like 'ProfilerStep#%' then 'ProfilerStep' else name end as name,
    count(*) as calls,
    cast(sum(self_ns) as bigint) as self_ns,
    cast(sum(case when recursive then 0 else duration_ns end) as bigint) as total_ns,
    max(duration_ns) as longest_ns
from ranges
where run like :run
group by case when name like 'ProfilerStep#%' then 'ProfilerStep' else name end
order by self_ns desc, name
limit :top

-- callers: Who calls a function: each caller, with its calls and their time.
-- parameter name = %: Functions to include, as a pattern of LIKE, such as %: load
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- empty: no recorded name matches (-p name='%load%'; marey ask hot lists names)
-- A caller is the range around a range.
select
    c.name as name,
    coalesce(p.name, '(outermost)') as caller,
    count(*) as calls,
    cast(sum(c.duration_ns) as bigint) as total_ns,
    max(c.duration_ns) as longest_ns
from ranges as c
left join ranges as p on p.run = c.run and p.host = c.host and p.capture = c.capture and p.row = c.parent
where c.run like :run and c.name like :name
group by c.name, coalesce(p.name, '(outermost)')
order by total_ns desc, name, caller
limit :top

-- waiting_functions: The functions that wait, for events, locks, other processes or the clock, and who calls them.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- empty: no function that only waits was recorded (marey run --c-calls records those written in C, too)
-- The table waits has the names of these functions, as patterns of LIKE.
with waiting as (
    select distinct n.name from (select distinct name from ranges) as n join waits as w on n.name like w.pattern)
select
    c.name as name,
    coalesce(p.name, '(outermost)') as caller,
    count(*) as calls,
    cast(sum(c.self_ns) as bigint) as waiting_ns,
    max(c.self_ns) as longest_ns
from ranges as c
join waiting as w on w.name = c.name
left join ranges as p on p.run = c.run and p.host = c.host and p.capture = c.capture and p.row = c.parent
where c.run like :run
group by c.name, coalesce(p.name, '(outermost)')
order by waiting_ns desc, name, caller
limit :top

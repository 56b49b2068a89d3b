-- launches: Work on devices by name: how often it was launched, and how much of it is short.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter short_ns = 10000: Work below this is short: launching it may take longer than running it
-- parameter top = 20: Rows to show
-- empty: no device was recorded (marey run --gpu)
select
    name, count(*) as launches,
    sum(case when duration_ns < :short_ns then 1 else 0 end) as short,
    cast(sum(duration_ns) as bigint) as total_ns,
    cast(floor(sum(duration_ns) / count(*)) as bigint) as mean_ns,
    max(duration_ns) as longest_ns
from ranges
where run like :run and device <> 'cpu' and sequence is null
group by name
order by launches desc, name
limit :top

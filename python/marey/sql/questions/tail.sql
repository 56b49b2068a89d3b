-- tail: The names with the longest 99th percentile, with their medians.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter calls = 100: Leave out names with fewer calls
-- parameter top = 20: Rows to show
-- empty: no name was recorded that often (-p calls=1)
-- Durations are counted in buckets, 32 for each doubling (below 64 ns one for each nanosecond); a quantile is the lower
-- edge of its bucket, so it is at most 1/32 too small, and the same on every engine. The number of a bucket follows from
-- the number of binary digits of the duration and the five digits after the first one.
with counted as (
    select name, bucket, count(*) as calls, max(duration_ns) as longest_ns
    from (
        select
            name, duration_ns,
            case when duration_ns < 64 then duration_ns
                else 64 + (length(bin(duration_ns)) - 7) * 32 + (duration_ns >> (length(bin(duration_ns)) - 6)) - 32
            end as bucket
        from ranges
        where run like :run and name not like 'ProfilerStep#%') as numbered
    group by name, bucket),
summed as (
    select
        name, bucket, longest_ns,
        sum(calls) over (partition by name order by bucket) as so_far,
        sum(calls) over (partition by name) as calls
    from counted)
select
    s.name,
    cast(max(s.calls) as bigint) as calls,
    min(case when s.so_far * 2 >= s.calls then b.low_ns end) as median_ns,
    min(case when s.so_far * 10 >= s.calls * 9 then b.low_ns end) as p90_ns,
    min(case when s.so_far * 100 >= s.calls * 99 then b.low_ns end) as p99_ns,
    max(s.longest_ns) as longest_ns
from summed as s join buckets as b on b.bucket = s.bucket
where s.calls >= :calls
group by s.name
order by p99_ns desc, s.name
limit :top

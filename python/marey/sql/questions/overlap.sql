-- overlap: Communication on devices, and how much of it computation hides, by rank.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter first_step = 0: First step to include
-- parameter last_step = 9: Last step to include
-- parameter top = 20: Rows to show
-- empty: no communication on a device was recorded in these steps (marey run --gpu)
-- Communication is work on a device that is a collective or whose name begins with nccl; computation is all other work
-- on a device. Times during which either runs are counted once: a range adds the part after the end of all earlier ones.
with work as (
    select run, coalesce(rank, 0) as rank, run_ns as start_ns, run_ns + duration_ns as end_ns,
        case when sequence is not null or name like 'nccl%' then 'communication' else 'computation' end as kind
    from ranges
    where run like :run and step between :first_step and :last_step and depth = 0 and device <> 'cpu'),
both_kinds as (
    select run, rank, kind, start_ns, end_ns from work
    union all
    select run, rank, 'any' as kind, start_ns, end_ns from work),
placed as (
    select run, rank, kind, start_ns, end_ns,
        coalesce(max(end_ns) over (partition by run, rank, kind order by start_ns, end_ns
            rows between unbounded preceding and 1 preceding), start_ns) as before_ns
    from both_kinds),
covered as (
    select run, rank, kind, sum(greatest(0, end_ns - greatest(start_ns, before_ns))) as busy_ns
    from placed group by run, rank, kind),
totals as (
    select run, rank,
        sum(case when kind = 'communication' then busy_ns else 0 end) as communication_ns,
        sum(case when kind = 'computation' then busy_ns else 0 end) as computation_ns,
        sum(case when kind = 'any' then busy_ns else 0 end) as any_ns
    from covered group by run, rank)
select
    run, rank,
    cast(computation_ns as bigint) as computation_ns,
    cast(communication_ns as bigint) as communication_ns,
    cast(computation_ns + communication_ns - any_ns as bigint) as overlap_ns,
    cast(any_ns - computation_ns as bigint) as exposed_ns
from totals
order by exposed_ns desc, run, rank
limit :top

met as (
    select
        r.run as run, r.group as team, r.sequence as sequence, max(r.run_ns) as last_ns,
        min(coalesce(r.rank, 0)) as lowest_rank, max(coalesce(r.rank, 0)) as highest_rank,
        max_by(coalesce(r.rank, 0), (r.run_ns, -coalesce(r.rank, 0))) as last_rank,
        max_by(coalesce(r.step, -1), (r.run_ns, -coalesce(r.rank, 0))) as last_step,
        max(r.run_ns) - floor(median(r.run_ns)) as late_ns,
        min(r.run_ns) as first_ns, max(r.run_ns + r.duration_ns) as end_ns
    from ranges as r
    where r.run like :run and r.sequence is not null
    group by r.run, r.group, r.sequence)

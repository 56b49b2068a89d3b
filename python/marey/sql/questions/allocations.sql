-- allocations: Memory that each rank allocated and held, by device.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- empty: nothing reported its allocations (marey run --memory, profile_memory=True)
-- Peaks are those that allocators report; 0 if they do not.
select
    run, coalesce(rank, 0) as rank, device, coalesce(device_index, 0) as device_index,
    sum(case when bytes > 0 then 1 else 0 end) as allocations,
    cast(sum(case when bytes > 0 then bytes else 0 end) as bigint) as allocated_bytes,
    cast(sum(case when bytes < 0 then -bytes else 0 end) as bigint) as freed_bytes,
    max(total_allocated) as peak_bytes,
    max(total_reserved) as peak_reserved_bytes,
    sum(case when out_of_memory then 1 else 0 end) as refused
from memory
where run like :run
group by run, coalesce(rank, 0), device, coalesce(device_index, 0)
order by allocated_bytes desc, run, rank, device, device_index
limit :top

-- one_step: The ranges of one step of one rank, in order of time.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter rank = 0: The rank; captures without a rank count as all ranks
-- parameter step = 0: The step
-- parameter top = 1000: Rows to show
-- empty: the rank has no such step: a range of scope step, as prof.step() records it
select
    run, host, capture, track, depth, name, run_ns, duration_ns, self_ns
from ranges
where run like :run and step = :step and (rank = :rank or rank is null)
order by run, host, capture, run_ns, track, depth, row
limit :top

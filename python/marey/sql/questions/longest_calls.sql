-- longest_calls: The single calls and ranges that took longest.
-- parameter name = %: Names to include, as a pattern of LIKE
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- empty: no recorded name matches (marey ask hot lists names)
-- run_ns is the start, since the start of the run. Steps and whole threads are not left out: name what you look for.
select run, name, run_ns, duration_ns, self_ns, pid, thread_name
from ranges
where run like :run and name like :name
order by duration_ns desc, run, run_ns, name, pid, thread_name
limit :top

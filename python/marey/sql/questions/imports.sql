-- imports: The Python modules that took longest to import, each with the imports inside it.
-- parameter run = %: Runs to include, as a pattern of LIKE
-- parameter top = 20: Rows to show
-- empty: no Python import was recorded (marey run records them, unless --no-calls is given)
-- Of imports that are not folded, the function of importlib has the module as its overload.
select
    coalesce(s.overload, substr(r.name, 8)) as module,
    count(*) as imports,
    cast(sum(r.duration_ns) as bigint) as total_ns
from ranges as r
join sites as s on s.run = r.run and s.host = r.host and s.capture = r.capture and s.row = r.site
where r.run like :run
    and (r.name like 'import %' or (r.name like '<frozen importlib._bootstrap>%' and s.overload is not null))
group by coalesce(s.overload, substr(r.name, 8))
order by total_ns desc, module
limit :top

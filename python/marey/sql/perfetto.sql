-- perfetto.sql: the names of Perfetto's trace processor as views, for queries that people already have.
-- Ids are rows of our tables: a slice is a range, utid a row of threads, upid a row of processes.
create view process as select
    row as id, row as upid, pid, name, null::bigint as start_ts, null::bigint as end_ts,
    command_line as cmdline, 'process' as type
    from processes;
create view thread as select
    t.row as id, t.row as utid, t.os_tid as tid, t.name, t.birth_ns as start_ts, t.death_ns as end_ts,
    t.process::bigint as upid, t.os_tid = p.pid as is_main_thread, 'thread' as type
    from threads t left join processes p on p.row = t.process;
create view track as select
    row as id, name, case when kind = 'device' then 'gpu_track' else 'thread_track' end as type
    from tracks;
create view thread_track as select
    row as id, name, 'thread_track' as type, thread::bigint as utid
    from tracks where kind <> 'device';
create view gpu_track as select
    row as id, name, 'gpu_track' as type, device_index as ugpu, stream as context_id
    from tracks where kind = 'device';
-- A range that had not ended has dur -1, as in Perfetto.
create view slice as select
    row as id, start_ns as ts, case when unfinished then -1 else duration_ns end as dur, track::bigint as track_id,
    category, name, depth::bigint as depth, parent::bigint as parent_id, row as arg_set_id, 'internal_slice' as type
    from ranges;
create view counter_track as select
    min(c.row) as id, c.name, 'thread_counter_track' as type, c.thread::bigint as utid
    from counters c group by c.name, c.thread;
create view thread_counter_track as select * from counter_track;
create view counter as select
    c.row as id, c.time_ns as ts, t.id as track_id, c.value, 'counter' as type
    from counters c join counter_track t on t.name = c.name and t.utid = c.thread;
create view flow as select
    row as id, "from"::bigint as slice_out, "to"::bigint as slice_in, name, 'flow' as type
    from links;
-- Values of ranges. Like Perfetto's exports, keys begin with "debug."; values without a key have their position.
create view args as select
    row as id, range::bigint as arg_set_id, 'debug.' || coalesce(key, position::varchar) as flat_key,
    'debug.' || coalesce(key, position::varchar) as key,
    coalesce(int_value, bool_value::bigint) as int_value, string_value, double_value as real_value,
    case kind when 'string' then 'string' when 'double' then 'real' when 'none' then 'null' else kind end as value_type,
    coalesce(string_value, int_value::varchar, bool_value::varchar, double_value::varchar) as display_value
    from arguments where range is not null;
create macro extract_arg(set_id, name) as (
    select max(display_value) from args a where a.arg_set_id = set_id and (a.key = name or a.key = 'debug.' || name));
create macro ancestor_slice(start_id) as table
    with recursive up(id, parent_id) as (
        select s.id, s.parent_id from slice s where s.id = (select parent_id from slice where id = start_id)
        union all
        select s.id, s.parent_id from slice s join up on s.id = up.parent_id)
    select s.* from slice s join up on s.id = up.id order by s.depth;
create macro descendant_slice(start_id) as table
    with recursive down(id) as (
        select s.id from slice s where s.parent_id = start_id
        union all
        select s.id from slice s join down on s.parent_id = down.id)
    select s.* from slice s join down on s.id = down.id order by s.id;

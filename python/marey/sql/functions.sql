-- functions.sql: functions for queries on a trace or a lake.
create macro human_time(ns) as case
    when ns is null then null
    when abs(ns) >= 60000000000 then printf('%.1f min', ns / 60000000000.0)
    when abs(ns) >= 1000000000 then printf('%.3f s', ns / 1000000000.0)
    when abs(ns) >= 1000000 then printf('%.3f ms', ns / 1000000.0)
    when abs(ns) >= 1000 then printf('%.3f us', ns / 1000.0)
    else printf('%d ns', ns::bigint) end;

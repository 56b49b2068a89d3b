"""Other engines on the files of a lake: Spark in local mode or through Spark Connect, and Ibis."""

from __future__ import annotations

import os
import re

from marey._marey import Error
from marey.sql.connection import require
from marey.sql.question import BUCKETS, WAITS, bucket_edges, wait_patterns
from marey.sql.runs import RUNS, table_names
from marey.sql.tables import COMPUTED, table_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INSTALL = '"pyspark[connect]"'
_OLDEST = (4, 0)


def spark_session(remote: str = "") -> Any:
    """Return a Spark session: in this process, or on a Spark Connect server."""
    pyspark = require("pyspark", _INSTALL)
    if tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2]) < _OLDEST:
        raise Error(f"pyspark {pyspark.__version__} is too old: pip install --upgrade {_INSTALL} (4.0 or later)")
    builder = require("pyspark.sql", _INSTALL).SparkSession.builder
    if remote:
        if not remote.startswith("sc://"):
            raise Error(f"invalid address '{remote}' of a Spark Connect server: expected sc://HOST or sc://HOST:PORT")
        try:
            session = builder.remote(remote).getOrCreate()
            session.sql("select 1").collect()
        except ImportError as error:
            raise Error(f"Spark Connect needs more packages: pip install {_INSTALL} ({error})") from None
        except Exception as error:
            raise Error(f"cannot use the Spark server {remote}: {_first_line(error)}") from None
    else:
        _check_java()
        builder = builder.master("local[*]").appName("marey")
        for key, value in _LOCAL.items():
            builder = builder.config(key, value)
        try:
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("ERROR")
        except Exception as error:
            raise Error(f"cannot start Spark: {_first_line(error)}") from None
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    return session


_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.warehouse.dir": os.path.join(os.sep, "tmp", "marey-spark"),
    "spark.log.level": "ERROR",
}
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # a run named 1 is a text
    "spark.sql.shuffle.partitions": "16",
}


def _check_java() -> None:
    import shutil

    home = os.environ.get("JAVA_HOME")
    if not (home and os.path.exists(os.path.join(home, "bin", "java"))) and shutil.which("java") is None:
        raise Error("Spark needs a Java runtime, 17 or later: apt-get install default-jre-headless")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def add_views(session: Any, lake: Any, sql: str | None = None) -> None:
    """Add a temporary view for every table of a lake; with `sql`, only for tables that occur in it."""
    union = str(lake.has_several_versions()).lower()
    for table in table_names():
        if sql is not None and not re.search(rf"\b{table}\b", sql, re.IGNORECASE):
            continue
        own, joined = lake.readable(table)
        if own or joined:
            reader = session.read.option("mergeSchema", union)
            frames = []
            if own:
                placed = reader if table == RUNS else reader.option("basePath", os.path.join(lake.path, table))
                frames.append(placed.parquet(*own))
            if joined:
                rows = session.read.option("mergeSchema", union).parquet(*joined)
                frames.append(rows.filter(~rows["run"].isin(lake.replaced_runs())))
            frame = frames[0]
            for other in frames[1:]:
                frame = frame.unionByName(other, allowMissingColumns=True)
            if table == "ranges":
                frame = frame.selectExpr("*", *(f"{value} as `{name}`" for name, value in COMPUTED.items()))
        else:
            frame = session.createDataFrame([], ", ".join(f"`{name}` {type}" for name, type in _spark_columns(table)))
        frame.createOrReplaceTempView(table)
    edges = session.createDataFrame(bucket_edges(), "bucket bigint, low_ns bigint, high_ns bigint")
    edges.createOrReplaceTempView(BUCKETS)
    session.createDataFrame([(text,) for text in wait_patterns()], "pattern string").createOrReplaceTempView(WAITS)


def _spark_columns(table: str) -> list[tuple[str, str]]:
    """Return the names and types of an empty table."""
    types = require("pyarrow").types
    columns = []
    for field in table_schema(table):
        if types.is_boolean(field.type):
            type = "boolean"
        elif types.is_floating(field.type):
            type = "double"
        else:
            type = "bigint" if types.is_integer(field.type) else "string"
        columns.append((field.name, type))
    return columns


def run_on_spark(lake: Any, sql: str, remote: str = "") -> Any:
    """Run a question's SQL on Spark and return a pyarrow.Table."""
    session = spark_session(remote)
    try:
        try:
            return _rows(session, lake, sql)
        except Exception:
            if not lake.leave_out_damage():
                raise
        return _rows(session, lake, sql)
    except Error:
        raise
    except Exception as error:
        faults = lake.find_damage()
        if faults:
            raise Error(f"{'; '.join(faults[:5])} (--skip-damaged leaves files like these out)") from None
        raise Error(f"Spark: {_first_line(error)}") from None


def _rows(session: Any, lake: Any, sql: str) -> Any:
    add_views(session, lake, sql)
    return session.sql(sql.strip().rstrip(";")).toArrow()


def ibis_connection(lake: Any, backend: str, remote: str = "") -> Any:
    """Return an Ibis connection with the tables of a lake."""
    ibis = require("ibis", '"ibis-framework[duckdb]>=12"')
    if backend == "duckdb":
        connection = lake.open_connection()
        opened = ibis.duckdb.from_connection(connection)  # changes settings
        lake.lock(connection)
        return opened
    if backend != "pyspark":
        raise Error(f"unknown backend {backend}: expected duckdb or pyspark")
    session = spark_session(remote)
    add_views(session, lake)
    return ibis.pyspark.connect(session)

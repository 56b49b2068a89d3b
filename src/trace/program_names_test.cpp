// program_names_test.cpp: processes are shown under the name of their script, main threads as Python calls
// them.
#include "trace/program_names.h"

#include <gtest/gtest.h>

#include "trace/trace_assembler.h"

namespace marey {
namespace {

constexpr const char* kPython = "/usr/bin/python3.11";

Trace trace_of(const std::string& executable, const std::string& command_line, const std::string& thread,
               std::int64_t tid = 100) {
    TraceAssembler assembler;
    ProcessInfo process;
    process.pid = 100;
    process.name = assembler.string(executable);
    process.command_line = assembler.string(command_line);
    ThreadInfo info;
    info.process = assembler.add_process(process);
    info.os_tid = tid;
    info.name = assembler.string(thread);
    assembler.add_thread(info);
    return assembler.finish();
}

std::string program(const std::string& command_line, const std::string& executable = kPython) {
    const Trace trace = trace_of(executable, command_line, "");
    return python_program(trace, trace.processes()[0]).value_or("none");
}

TEST(ProgramNames, AreThoseOfScriptsAndModules) {
    EXPECT_EQ(program("python3 app.py --fast -c x"), "app.py");
    EXPECT_EQ(program("/v/bin/python -u -X dev -Wignore -W error /v/bin/black --version"), "black");
    EXPECT_EQ(program("python -m pytest -q"), "pytest");
    EXPECT_EQ(program("python -Im http.server"), "http.server");
    EXPECT_EQ(program("python -mjson.tool"), "json.tool");
    EXPECT_EQ(program("python --check-hash-based-pycs=never app.py"), "app.py");
    for (const char* const other :
         {"python -c pass app.py", "python -uc pass", "python - app.py", "python", "", "python -m"})
        EXPECT_EQ(program(other), "python3.11") << other;
    EXPECT_EQ(program("./train app.py", "/opt/bin/train"), "none");
}

std::string thread_name(const Trace& trace) {
    return shown_thread_name(trace, trace.threads()[0]);
}

TEST(ProgramNames, CallTheMainThreadOfAPythonProgramMainThread) {
    EXPECT_EQ(thread_name(trace_of(kPython, "/v/bin/python app.py", "python")), "MainThread");
    EXPECT_EQ(thread_name(trace_of(kPython, "/v/bin/python3 /v/bin/black x", "black")), "MainThread");
    EXPECT_EQ(thread_name(trace_of(kPython, "python a_script_with_a_long_name", "a_script_with_a")),
              "MainThread");
    EXPECT_EQ(thread_name(trace_of(kPython, "python app.py", "")), "MainThread");
}

TEST(ProgramNames, KeepTheNamesOfOtherThreads) {
    EXPECT_EQ(thread_name(trace_of(kPython, "python app.py", "python", 101)), "python");
    EXPECT_EQ(thread_name(trace_of(kPython, "python app.py", "named by program")), "named by program");
    EXPECT_EQ(thread_name(trace_of("/opt/bin/train", "train", "train")), "train");
}

}  // namespace
}  // namespace marey

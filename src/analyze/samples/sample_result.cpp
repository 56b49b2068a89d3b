// sample_result.cpp: the columns of what samples say.
#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {

Result sample_result(const Trace& trace, const SampleReport& report) {
    using enum ResultUnit;
    using enum ResultShown;
    ResultRows<SampleReport> totals("sampled_totals", "Times of all samples of the trace", true);
    totals.columns({
        {"samples", &SampleReport::samples, "samples of running threads"},
        {"running_ns", &SampleReport::running_ns, "CPU time of the sampled threads"},
        {"waiting_ns", &SampleReport::waiting_ns, "time in which they waited"},
        {"preempted_ns", &SampleReport::preempted_ns, "time in which other threads had the CPU"},
    });
    if (trace.samples().size() != 0) totals.add(report);

    ResultRows<OfTrace<SamplingInfo>> sampling("sampled_processes", "How each process was sampled");
    sampling.columns({
        {"pid", [](auto& r) { return process_id(r.trace, r.it.process); }, "process id", "", No, None},
        {"clock", [](auto& r) { return r.text(r.it.clock); }, "what took the samples", "clock"},
        {"rate_asked", &SamplingInfo::rate_asked, "samples per second of CPU time", "asked", Yes, None},
        {"rate_reached", &SamplingInfo::rate_reached, "the same, as measured", "reached", Yes, None},
        {"samples", &SamplingInfo::samples, "samples of running threads", "samples"},
        {"torn", &SamplingInfo::torn, "samples whose Python frames could not be read", "torn"},
        {"cut", &SamplingInfo::cut, "samples whose outer frames are missing", "cut"},
        {"lost", &SamplingInfo::lost, "samples lost for lack of space", "lost"},
    });
    for (const SamplingInfo& info : trace.sampling()) sampling.add({trace, info});

    ResultRows<SampledWait> waits("sampled_waits", "Waits of the sampled threads, by purpose");
    waits.columns({
        {"kind", &SampledWait::kind, "what for; other: no known function was on the stack", "waiting for"},
        {"time_ns", &SampledWait::time_ns, "sum of the waits of all threads", "time"},
        {"waits", &SampledWait::waits, "number of waits", "waits"},
    });
    for (const SampledWait& wait : report.waits) waits.add(wait);

    struct Line {
        const SampleReport& report;
        const SampledRow& it;
    };
    ResultRows<Line> rows("sampled", "Samples by function, line, thread, range or step");
    rows.columns({
        {"self_ns", [](auto& r) { return r.it.self_ns; }, "CPU time, without that of the functions it called",
         "self"},
        {"share", [](auto& r) { return share_of(r.it.self_ns, r.report.running_ns); },
         "self_ns as a share of the CPU time of all samples", "share"},
        {"total_ns", [](auto& r) { return r.it.total_ns; }, "CPU time, with that of the functions it called",
         "total"},
        {"waiting_ns", [](auto& r) { return r.it.waiting_ns; }, "waits in it and in the functions it called",
         "waiting"},
        {"self_waiting_ns", [](auto& r) { return r.it.self_waiting_ns; }, "waits in itself"},
        {"samples", [](auto& r) { return r.it.samples; }, "samples of running and waiting threads",
         "samples"},
        {"name", [](auto& r) { return r.it.name; }, "the function, thread, range or step", "name", Call},
        {"file", [](auto& r) { return text_or_null(r.it.file); }, "source file"},
        {"line", [](auto& r) { return when(r.it.line != 0, r.it.line); }, "line that ran, by line", "", No,
         None},
    });
    for (const SampledRow& row : report.rows) rows.add({report, row});
    return made_result(trace, totals, sampling, waits, rows);
}

}  // namespace marey

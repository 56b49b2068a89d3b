// chrome_json.cpp: Chrome's trace JSON, streamed. docs/chrome_json.md tells what becomes what.
#include <algorithm>
#include <string>

#include <kymo/export.h>
#include <kymo/suspended_calls.h>

#include "base/json_writer.h"
#include "base/output_file.h"
#include "export/chrome_arguments.h"
#include "export/chrome_clock.h"
#include "export/chrome_header.h"
#include "export/chrome_ranges.h"
#include "export/chrome_rows.h"
#include "export/chrome_text.h"
#include "trace/chrome_categories.h"

namespace kymo {
namespace {

class ChromeJson {
  public:
    /// `target`: a path or a stream.
    template <typename Target>
    ChromeJson(const Trace& trace, Target& target)
        : trace_(trace), clock_(trace.window()), rows_(trace), file_(target), ranges_(trace, rows_, out_) {}

    void write() {
        ChromeHeader header(trace_, rows_, out_);
        header.write_facts();
        header.write_names();
        ranges_.write();
        write_instants();
        write_counters();
        write_memory();
        write_trailer();
        file_.commit();
    }

  private:
    /// "cat":...,"name":...,"pid":...,"tid":...,"ts":12.345
    void put_event(std::string_view category, std::string_view name, Row thread, std::int64_t time_ns) {
        out_.put("\"cat\":");
        out_.string(category);
        out_.put(",\"name\":");
        out_.string(name);
        out_.put(',');
        out_.put(chrome_row_text(rows_.of_thread(thread)));
        out_.put(clock_.micros(time_ns));
    }
    void put_event(std::uint32_t site, Row thread, std::int64_t time_ns) {
        const SiteInfo& info = trace_.sites()[site];
        put_event(chrome_category(trace_, info, false), trace_.string(info.name), thread, time_ns);
    }

    void write_instants() {
        const InstantColumns instants = trace_.instants();
        for (Row row = 0; row < instants.size(); ++row) {
            out_.put("{\"ph\":\"i\",\"s\":\"t\",");
            put_event(instants.site[row], instants.thread[row], instants.time_ns[row]);
            out_.put(",\"args\":{");
            arguments_.begin();
            arguments_.append_values(trace_.instant_arguments(row));
            arguments_.append_rendered(ranges_.members(instants.site[row]));
            out_.put("}},\n");
        }
    }

    void write_counters() {
        const CounterColumns counters = trace_.counters();
        for (Row row = 0; row < counters.size(); ++row) {
            out_.put("{\"ph\":\"C\",");
            put_event(counters.site[row], counters.thread[row], counters.time_ns[row]);
            out_.put(",\"args\":{\"value\":");
            out_.real(counters.value[row]);
            out_.put("}},\n");
        }
    }

    void write_memory() {
        const MemoryColumns memory = trace_.memory();
        for (Row row = 0; row < memory.size(); ++row) {
            const bool out_of_memory = memory.out_of_memory[row] != 0;
            out_.put("{\"ph\":\"i\",\"s\":\"t\",");
            put_event("cpu_instant_event", out_of_memory ? "[OutOfMemory]" : "[memory]", memory.thread[row],
                      memory.time_ns[row]);
            out_.put(",\"args\":{\"Total Reserved\":");
            out_.integer(memory.total_reserved[row]);
            out_.put(",\"Total Allocated\":");
            out_.integer(memory.total_allocated[row]);
            out_.put(",\"Bytes\":");
            out_.integer(memory.bytes[row]);
            if (!out_of_memory) {
                out_.put(",\"Addr\":");
                out_.integer(memory.address[row]);
            }
            out_.put(",\"Device Id\":");
            out_.integer(std::int64_t{memory.device[row].index});
            out_.put(",\"Device Type\":");
            out_.integer(static_cast<std::int64_t>(memory.device[row].type));
            out_.put("}},\n");
        }
    }

    /// The name of the span: what tools look for where the trace is of their kind, else the session's.
    std::string span_name() const {
        const auto is_torch_like = [](const SiteInfo& site) {
            return is_operator(site.scope) || site.scope == Scope::Device;
        };
        if (std::any_of(trace_.sites().begin(), trace_.sites().end(), is_torch_like))
            return "PyTorch Profiler";
        return trace_.window().session_name.empty() ? "Kymo" : trace_.window().session_name;
    }

    /// The window. Its end is the last event and has no comma after it, so that every other one can have it
    /// without a look behind.
    void write_trailer() {
        constexpr std::int64_t kSpanIndex = 0x20000000;  // below everything, as PyTorch has it
        const std::string span = span_name();
        const std::string start = clock_.micros(clock_.start_ns()), end = clock_.micros(clock_.end_ns());
        std::string text;
        JsonWriter json(text);
        json.begin_object().member("ph", "M").member("name", "process_sort_index").member("pid", "Spans");
        json.member("tid", 0).key("args").begin_object().member("sort_index", kSpanIndex);
        json.end_object().end_object();
        text += ",\n{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":";
        append_json_string(text, span + " (0)");
        text += ",\"pid\":\"Spans\",\"tid\":";
        append_json_string(text, span);
        text += ",\"ts\":" + start + ",\"dur\":" + end + ",\"args\":{\"Op count\":";
        append_json_number(text, std::uint64_t{trace_.ranges().size()});
        text += "}},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":";
        append_json_string(text, "Iteration Start: " + span);
        text += ",\"pid\":\"Traces\",\"tid\":";
        append_json_string(text, "Trace " + span);
        text +=
            ",\"ts\":" + start +
            "},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":" +
            end + "}\n]}\n";
        out_.put(text);
    }

    const Trace& trace_;
    const ChromeClock clock_;
    const ChromeRows rows_;
    OutputFile file_;
    ChromeText out_{file_};
    ChromeRanges ranges_;
    ChromeArguments arguments_{trace_, out_};
};

}  // namespace

void write_chrome_json(const Trace& trace, const std::string& path) {
    ChromeJson(with_part_flows(with_task_tracks(trace)), path).write();
}

void write_chrome_json(const Trace& trace, std::ostream& stream) {
    ChromeJson(with_part_flows(with_task_tracks(trace)), stream).write();
}

}  // namespace kymo

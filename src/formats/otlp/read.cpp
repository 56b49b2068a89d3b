// read.cpp: reads OpenTelemetry spans in OTLP JSON: one document, or one per line as collectors write them.
// The times of spans are exact.
#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include <marey/error.h>

#include "formats/formats.h"
#include "formats/sampled_profile.h"
#include "json/json_document.h"
#include "trace/trace_context.h"

namespace marey {
namespace {

class OtlpReader {
  public:
    explicit OtlpReader(const std::string& name) : name_(name) {}

    Trace read(std::string_view text) {
        const JsonDocument whole(text);
        if (whole.error().empty()) {
            read_document(whole.root());
        } else {
            read_lines(text, whole.error());
        }
        if (!has_spans_) throw Error(name_ + ": no OpenTelemetry spans (resourceSpans) were found");
        add_links();
        const auto add = [&](const char* code, const char* sentence, std::uint64_t count) {
            assembler_.add_problem(code, sentence, count);
        };
        add("unread_lines", "Lines that are not JSON were skipped.", unread_lines_);
        add("unread_spans", "Spans without valid times were skipped.", unread_);
        assembler_.clock().source = "otlp";
        return assembler_.finish();
    }

  private:
    using Value = JsonDocument::Value;

    void read_lines(std::string_view text, const std::string& error) {
        std::uint64_t lines = 0;
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            const std::string_view line = text.substr(0, end);
            text.remove_prefix(end == text.npos ? text.size() : end + 1);
            if (line.find_first_not_of(" \t\r") == line.npos) continue;
            const JsonDocument document(line);
            if (document.error().empty()) {
                ++lines;
                read_document(document.root());
            } else {
                ++unread_lines_;
            }
        }
        if (lines == 0) throw Error(name_ + ": " + error);
    }

    void read_document(const Value& root) {
        if (root["resourceSpans"].is_array()) has_spans_ = true;
        root["resourceSpans"].each_item([&](const Value& resource) {
            const Row process = process_of(resource["resource"]["attributes"]);
            for (const char* const scopes : {"scopeSpans", "instrumentationLibrarySpans"}) {
                resource[scopes].each_item([&](const Value& scope) {
                    scope["spans"].each_item([&](const Value& span) { read_span(process, span); });
                });
            }
        });
    }

    static Value attribute(const Value& attributes, std::string_view key) {
        Value found;
        attributes.each_item([&](const Value& attribute) {
            if (attribute["key"].text() == key) found = attribute["value"];
        });
        return found;
    }

    Row process_of(const Value& attributes) {
        std::string service = attribute(attributes, "service.name")["stringValue"].text();
        const std::int64_t pid = attribute(attributes, "process.pid")["intValue"].integer().value_or(0);
        const std::string host = attribute(attributes, "host.name")["stringValue"].text();
        const auto [place, is_new] = processes_.try_emplace({service, host, pid}, 0);
        if (!is_new) return place->second;
        ProcessInfo info{.pid = pid, .name = assembler_.string(service), .host = assembler_.string(host)};
        const auto rank = attribute(attributes, "marey.rank")["intValue"].integer();
        if (rank && *rank >= 0 && *rank <= 0x7fffffff) info.node = static_cast<std::int32_t>(*rank);
        return place->second = assembler_.add_process(info);
    }

    std::uint32_t lane_of(Row process, const Value& attributes) {
        const std::int64_t tid = attribute(attributes, "thread.id")["intValue"].integer().value_or(0);
        const auto [place, is_new] = lanes_.try_emplace({process, tid}, 0);
        if (!is_new) return place->second;
        return place->second = assembler_.add_lane({assembler_.add_thread(
                   {.process = process,
                    .id = static_cast<std::uint32_t>(lanes_.size()),
                    .os_tid = tid,
                    .name = assembler_.string(attribute(attributes, "thread.name")["stringValue"].text())})});
    }

    void read_span(Row process, const Value& span) {
        const auto start = span["startTimeUnixNano"].integer(), end = span["endTimeUnixNano"].integer();
        if (!start || !end || *start < 0 || *end < *start || *end > SampledProfile::kMaxTimeNs) {
            ++unread_;
            return;
        }
        const Value attributes = span["attributes"];
        const std::uint32_t lane = lane_of(process, attributes);
        SiteInfo site{
            .name = assembler_.string(span["name"].text()),
            .file = assembler_.string(attribute(attributes, "code.file.path")["stringValue"].text())};
        const std::int64_t line = attribute(attributes, "code.line.number")["intValue"].integer().value_or(0);
        site.line = line > 0 && line <= 0x7fffffff ? static_cast<std::uint32_t>(line) : 0;
        const auto flag = [&](const char* key, std::uint16_t value) {
            return attribute(attributes, key)["boolValue"].is_true() ? value : std::uint16_t{0};
        };
        const auto flags = static_cast<std::uint16_t>(flag("marey.unfinished", kUnfinished) |
                                                      flag("marey.began_before", kBeganBefore) |
                                                      flag("marey.remote", kRemote));
        const auto range = assembler_.add_range(lane, *start, *end - *start, assembler_.site(site), flags);
        std::vector<Argument> values;
        attributes.each_item([&](const Value& its) { add_value(values, its["key"].text(), its["value"]); });
        const std::string trace_id = span["traceId"].text(), span_id = span["spanId"].text(),
                          parent = span["parentSpanId"].text();
        if (!span_id.empty()) add_text(values, kSpanIdKey, span_id);
        if (!trace_id.empty()) add_text(values, kTraceIdKey, trace_id);
        assembler_.add_values(range, values);
        if (!span_id.empty()) spans_.try_emplace(trace_id + span_id, range);
        if (!parent.empty()) children_.push_back({range, trace_id + parent});
        ranges_.push_back({lane, process});
        const Row thread = assembler_.lane(lane).thread;
        span["events"].each_item([&](const Value& event) {
            const auto time = event["timeUnixNano"].integer();
            if (!time || *time < 0 || *time > SampledProfile::kMaxTimeNs) return;
            SiteInfo mark;
            mark.name = assembler_.string(event["name"].text());
            assembler_.add_instant(thread, *time, assembler_.site(mark));
        });
    }

    void add_text(std::vector<Argument>& values, std::string_view key, std::string_view text) {
        values.emplace_back().key = assembler_.string(key);
        values.back().set_string(assembler_.string(text));
    }
    void add_value(std::vector<Argument>& values, const std::string& key, const Value& given) {
        static constexpr std::string_view kElsewhere[] = {"thread.id", "thread.name", "code.file.path",
                                                          "code.line.number"};
        if (std::ranges::find(kElsewhere, key) != std::end(kElsewhere) || key.starts_with("marey.") ||
            key == kSpanIdKey || key == kTraceIdKey)
            return;
        Argument value;
        value.key = assembler_.string(key);
        if (const Value text = given["stringValue"]; !text.is_null()) {
            value.set_string(assembler_.string(text.text()));
        } else if (const auto integer = given["intValue"].integer()) {
            value.set_integer(*integer);
        } else if (const auto real = given["doubleValue"].number()) {
            value.set_real(*real);
        } else if (const Value truth = given["boolValue"]; !truth.is_null()) {
            value.set_bool(truth.is_true());
        } else {
            return;
        }
        values.push_back(value);
    }

    /// Spans on the thread of their parent nest by their times; the others get an arrow from it.
    void add_links() {
        for (const auto& [child, parent] : children_) {
            const auto found = spans_.find(parent);
            if (found == spans_.end() || ranges_[found->second].first == ranges_[child].first) continue;
            const bool is_remote = ranges_[found->second].second != ranges_[child].second;
            assembler_.add_link(found->second, child, is_remote ? LinkKind::Remote : LinkKind::Flow,
                                is_remote ? 0 : assembler_.string("parent"));
        }
    }

    std::string name_;
    TraceAssembler assembler_;
    std::map<std::tuple<std::string, std::string, std::int64_t>, Row> processes_;
    std::map<std::pair<Row, std::int64_t>, std::uint32_t> lanes_;
    std::unordered_map<std::string, TraceAssembler::RangeId> spans_;  ///< by trace and span id
    std::vector<std::pair<TraceAssembler::RangeId, std::string>> children_;
    std::vector<std::pair<std::uint32_t, Row>> ranges_;  ///< lane and process of each range
    std::uint64_t unread_ = 0, unread_lines_ = 0;
    bool has_spans_ = false;
};

Trace read_otlp_text(std::string_view text, const std::string& name) {
    return OtlpReader(name).read(text);
}

bool is_otlp(std::span<const std::byte> head) noexcept {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    return is_chrome_json(head) && text.find("\"resourceSpans\"") != text.npos;
}

}  // namespace

FileFormat otlp_format() {
    static constexpr std::string_view kSuffixes[] = {".otlp.json", ".otlp.json.gz"};
    return {"otlp",
            "OpenTelemetry spans (OTLP JSON), for Jaeger, Tempo, collectors",
            "calls: only ranges marked by hand, steps and ranges of other processes are spans",
            kSuffixes,
            [](const Trace& trace, const std::string& path) { write_otlp(trace, path, 0); },
            is_otlp,
            read_otlp_text};
}

}  // namespace marey

// redact.cpp: removes texts from a trace.
#include <marey/redact.h>

#include <memory>

#include "trace/used_names.h"

namespace marey {
namespace {

/// Replaces "/home/NAME", "/Users/NAME" and "/root" where a path begins.
std::string without_home(std::string_view text) {
    const auto is_start = [&](std::size_t at) {
        return at == 0 || std::string_view(" \"'=:,;([").find(text[at - 1]) != std::string_view::npos;
    };
    const auto is_end = [&](std::size_t at) { return at == text.size() || text[at] == '/'; };
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = 0;
        for (const std::string_view folder : {"/home/", "/Users/", "/root"}) {
            if (!is_start(at) || !text.substr(at).starts_with(folder)) continue;
            end = at + folder.size();
            if (folder.ends_with('/')) {
                while (end < text.size() && text[end] != '/' && text[end] != ' ') ++end;
            } else if (!is_end(end)) {
                end = 0;
            }
        }
        if (end != 0) {
            out += '~';
            at = end;
        } else {
            out += text[at++];
        }
    }
    return out;
}

}  // namespace

Trace redact(const Trace& trace, const Redaction& redaction) {
    const auto data = std::make_shared<TraceData>(trace.data());
    if (redaction.values) {
        data->arguments.clear();
        data->list_items.clear();
        data->range_arguments.clear();
        data->instant_arguments.clear();
        data->arrays.clear();
        data->array_extents.clear();
    }
    for (ProcessInfo& process : data->processes) {
        if (redaction.command_line) process.command_line = 0;
        if (redaction.host) process.host = 0;
    }
    if (redaction.metadata) data->metadata.clear();
    if (redaction.home) {
        for (ProblemInfo& problem : data->problems) problem.text = without_home(problem.text);
        for (std::string& text : data->strings) text = without_home(text);
        data->window.session_name = without_home(data->window.session_name);
    }
    drop_unused_strings(*data);
    return Trace(data);
}

}  // namespace marey

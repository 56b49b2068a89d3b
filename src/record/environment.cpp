// environment.cpp: what environment variables request. docs/reference/environment.md lists them.
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include <marey/call_pattern.h>
#include <marey/error.h>
#include <marey/execution_trace.h>

#include "base/environment.h"
#include "record/recorder.h"

/// Defined only by the command `marey`, which uses this library and must not record itself.
extern "C" __attribute__((weak, visibility("default"))) const char marey_is_the_command;

namespace marey {
namespace {

// Splits at commas; "\," stands for a comma.
std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> parts(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) {
            parts.back() += text[++i];
        } else if (text[i] == ',') {
            parts.emplace_back();
        } else {
            parts.back() += text[i];
        }
    }
    return parts;
}

std::uint64_t parse_bytes(const std::string& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string unit(end, text.data() + text.size());
    int shift = -1;
    if (unit.empty() || unit == "B") shift = 0;
    if (unit == "k" || unit == "K" || unit == "kB" || unit == "KB" || unit == "KiB") shift = 10;
    if (unit == "M" || unit == "MB" || unit == "MiB") shift = 20;
    if (unit == "G" || unit == "GB" || unit == "GiB") shift = 30;
    if (error != std::errc() || shift < 0 || number == 0 || number > (~std::uint64_t{0} >> shift)) {
        throw Error("max=" + text + ": expected a size such as 64MB or 2GB");
    }
    return number << shift;
}

Policy parse_policy(const std::string& text) {
    if (text == "stop") return Policy::Stop;
    if (text == "drop") return Policy::Drop;
    if (text == "ring") return Policy::Ring;
    throw Error("policy=" + text + ": expected stop, drop or ring");
}

/// Calls `visit` with each word between "|" separators.
template <class Visit>
void each_word(const std::string& text, Visit visit) {
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('|', at), text.size());
        visit(text.substr(at, end - at));
        at = end + 1;
    }
}

std::vector<std::string> parse_devices(const std::string& text) {
    std::vector<std::string> names;
    each_word(text, [&](const std::string& name) {
        if (name.empty()) throw Error("devices=" + text + ": expected names such as cuda");
        names.push_back(name);
    });
    return names;
}

ScopeSet parse_scopes(const std::string& text) {
    std::uint32_t bits = 0;
    each_word(text, [&](const std::string& word) {
        bool known = word == "all";
        if (known) bits = ScopeSet::all().bits();
        for (int scope = 0; scope < kScopeCount; ++scope) {
            if (word != scope_name(static_cast<Scope>(scope))) continue;
            bits |= 1u << scope;
            known = true;
        }
        if (!known) throw Error("scopes=" + text + ": unknown scope '" + word + "'");
    });
    return ScopeSet::from_bits(bits);
}

bool parse_switch(const std::string& key, const std::string& text) {
    if (text == "1" || text == "on" || text == "yes" || text.empty()) return true;
    if (text == "0" || text == "off" || text == "no") return false;
    throw Error(key + "=" + text + ": expected on or off");
}

bool parse_c_calls(const std::string& text) {
    return text == "auto" || parse_switch("c_calls", text);
}

std::uint64_t parse_number(const std::string& key, const std::string& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
        throw Error(key + "=" + text + ": expected a number");
    return number;
}

const std::string& parse_pattern(const std::string& key, const std::string& text) {
    if (const char* const fault = call_pattern_error(text))
        throw Error(key + "=" + text + ": the pattern " + fault);
    return text;
}

/// Sets the options that select Python calls. False: no such key.
template <class Options>
bool set_call_option(Options& options, const std::string& key, const std::string& value) {
    if constexpr (requires { options.calls; }) {
        auto& calls = options.calls;
        if (key == "include") {
            calls.include.push_back(parse_pattern(key, value));
        } else if (key == "exclude") {
            calls.exclude.push_back(parse_pattern(key, value));
        } else if (key == "fold_libraries") {
            calls.fold_libraries = parse_switch(key, value);
        } else if (key == "call_lines") {
            calls.lines = parse_switch(key, value);
        } else if (key == "min_duration_ns") {
            calls.min_duration_ns = parse_number(key, value);
        } else if (key == "max_depth") {
            calls.max_depth = static_cast<std::uint32_t>(
                std::min<std::uint64_t>(parse_number(key, value), ~std::uint32_t{0}));
        } else if (key == "call_budget") {
            calls.budget = parse_number(key, value);
        } else {
            return false;
        }
        return true;
    }
    return false;
}

}  // namespace

std::uint32_t parse_device_activities(const std::string& names) {
    constexpr std::pair<const char*, std::uint32_t> kWords[] = {
        {"default", kDeviceDefault},
        {"all", kDeviceAll},
        {"kernels", kDeviceKernels},
        {"copies", kDeviceCopies},
        {"sets", kDeviceSets},
        {"calls", kDeviceCalls},
        {"driver_calls", kDeviceDriverCalls},
        {"waits", kDeviceWaits},
        {"overhead", kDeviceOverhead},
        {"times", kDeviceTimes},
    };
    std::uint32_t bits = 0;
    each_word(names, [&](const std::string& word) {
        const auto* const found = std::find_if(std::begin(kWords), std::end(kWords),
                                               [&](const auto& known) { return word == known.first; });
        if (found == std::end(kWords))
            throw Error("unknown device activity '" + word +
                        "'; expected kernels, copies, sets, calls, driver_calls, waits, overhead, times, "
                        "default or all");
        bits |= found->second;
    });
    return bits;
}

SessionOptions parse_options(std::string_view text) {
    SessionOptions options;
    bool c_calls = true;
    for (const std::string& part : split(text)) {
        if (part.empty()) continue;
        const std::size_t equals = part.find('=');
        const std::string key = part.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
        if (key == "out") {
            options.output = value;
        } else if (key == "max") {
            options.max_bytes = parse_bytes(value);
        } else if (key == "policy") {
            options.policy = parse_policy(value);
        } else if (key == "scopes") {
            options.scopes = parse_scopes(value);
        } else if (key == "name") {
            options.name = value;
        } else if (key == "values") {
            options.record_values = parse_switch(key, value);
        } else if (key == "shapes") {
            options.record_shapes = parse_switch(key, value);
        } else if (key == "inputs") {
            options.concrete_inputs = parse_switch(key, value);
        } else if (key == "memory") {
            options.profile_memory = parse_switch(key, value);
        } else if (key == "flops") {
            options.with_flops = parse_switch(key, value);
        } else if (key == "devices") {
            options.devices = parse_devices(value);
        } else if (key == "device_activities") {
            options.device_activities = parse_device_activities(value);
        } else if (key == "nvtx") {
            options.with_nvtx = parse_switch(key, value);
        } else if (key == "calls") {
            options.with_stack = parse_switch(key, value);
        } else if (key == "c_calls") {
            c_calls = parse_c_calls(value);
        } else if (!set_call_option(options, key, value)) {
            throw Error(
                "'" + part +
                "': expected out=, max=, policy=, scopes=, name=, values=, shapes=, inputs=, memory=, "
                "flops=, devices=, device_activities=, nvtx=, calls= or c_calls=");
        }
    }
    if (options.with_stack && !c_calls) {
        const std::uint32_t bits = options.scopes.empty() ? ScopeSet::all().bits() : options.scopes.bits();
        options.scopes = ScopeSet::from_bits(bits & ~(1u << static_cast<unsigned>(Scope::CFunction)));
    }
    return options;
}

void warn(std::string_view text) noexcept {
    const std::string line = "marey: " + std::string(text) + "\n";
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // there is nothing else to do
}

ExecutionTraceRequest execution_trace_request() {
    ExecutionTraceRequest request;
    const std::string ours = environment_text("MAREY_EXECUTION_TRACE");
    const std::string pytorch = environment_text("ENABLE_PYTORCH_EXECUTION_TRACE");
    request.is_wanted = ours.empty() ? pytorch == "1" : ours != "0";
    if (ours != "0" && ours != "1") request.path = ours;
    const std::string extras = environment_text("MAREY_EXECUTION_TRACE_EXTRAS");
    request.with_resources =
        (extras.empty() ? environment_text("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS") : extras) == "1";
    return request;
}

void start_environment_session() noexcept {
    const std::string text = environment_text("MAREY");
    if (text.empty() || &marey_is_the_command != nullptr) return;
    try {
        SessionOptions options = parse_options(text);
        if (options.output.empty())
            throw Error("out= is missing: set it to the path of the capture, as in MAREY=out=app.marey");
        Recorder::get().start_for_environment(options);
    } catch (const std::exception& error) {
        warn("not recording: MAREY=" + text + ": " + error.what());
    }
}

}  // namespace marey

// session_options.cpp: the text form of a session's options. docs/reference/environment.md describes it.
// Also checks the patterns of options that take them.
#include <marey/session_options.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <limits>
#include <utility>

#include <marey/call_pattern.h>
#include <marey/error.h>

#include "base/environment.h"
#include "record/spool.h"

namespace marey {
namespace {

// Splits at commas; a backslash escapes the next character.
std::vector<std::string> split_entries(std::string_view text) {
    std::vector<std::string> entries(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) {
            entries.back() += text[++i];
        } else if (text[i] == ',') {
            entries.emplace_back();
        } else {
            entries.back() += text[i];
        }
    }
    return entries;
}

[[noreturn]] void reject(const char* what, std::string_view text, const std::string& expected) {
    const std::string shown(text.substr(0, text.find('\0')));  // an error message ends there
    throw Error(std::string(what) + " '" + shown + "'" + expected);
}

/// Words with their values.
template <class Value>
using Word = std::pair<const char*, Value>;

template <class Value, std::size_t count>
const Value* find_word(const Word<Value> (&words)[count], std::string_view text) {
    const auto* const found =
        std::find_if(words, words + count, [&](const Word<Value>& word) { return text == word.first; });
    return found == words + count ? nullptr : &found->second;
}

/// Calls `visit` with each word between "|" separators.
void each_word(std::string_view text, auto visit) {
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('|', at), text.size());
        visit(text.substr(at, end - at));
        at = end + 1;
    }
}

/// Removes a number from the front of `text`.
bool take_number(std::string_view& text, std::uint64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc();
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
    static constexpr Word<int> kShifts[] = {{"", 0},     {"b", 0},   {"k", 10},   {"kb", 10}, {"kib", 10},
                                            {"m", 20},   {"mb", 20}, {"mib", 20}, {"g", 30},  {"gb", 30},
                                            {"gib", 30}, {"t", 40},  {"tb", 40},  {"tib", 40}};
    std::string_view rest = text;
    std::uint64_t number = 0;
    const bool is_number = take_number(rest, number);
    std::string unit(rest.substr(std::min(rest.find_first_not_of(' '), rest.size())));
    for (char& c : unit) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const int* const shift = find_word(kShifts, unit);
    if (!is_number || shift == nullptr || number == 0 || number > (~std::uint64_t{0} >> *shift))
        reject("invalid size", text, ": expected a number with an optional unit, such as 512MB");
    return number << *shift;
}

namespace {

std::uint64_t parse_time(std::string_view text) {
    static constexpr Word<std::uint64_t> kUnits[] = {
        {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"min", 60'000'000'000}};
    std::string_view rest = text;
    std::uint64_t number = 0;
    const bool is_number = take_number(rest, number);
    const std::uint64_t* const unit = find_word(kUnits, rest);
    if (!is_number || unit == nullptr || number > (~std::uint64_t{0} >> 1) / *unit)
        reject("invalid time", text, ": expected a number with a unit (ns, us, ms, s or min), such as 30s");
    return number * *unit;
}

std::uint64_t parse_number(std::string_view text, std::uint64_t most) {
    std::string_view rest = text;
    std::uint64_t number = 0;
    if (!take_number(rest, number) || !rest.empty() || number > most)
        reject("invalid value", text, ": expected a number from 0 to " + std::to_string(most));
    return number;
}

std::uint32_t scope_bits(std::string_view word) {
    if (word == "all") return ScopeSet::all().bits();
    std::string names = "all";
    for (int scope = 0; scope < kScopeCount; ++scope) {
        const char* const name = scope_name(static_cast<Scope>(scope));
        if (word == name) return 1u << scope;
        names += std::string(", ") + name;
    }
    reject("unknown scope", word, "; expected " + names);
}

std::uint32_t activity_bits(std::string_view word) {
    static constexpr Word<std::uint32_t> kActivities[] = {
        {"default", kDeviceDefault},  {"all", kDeviceAll},     {"kernels", kDeviceKernels},
        {"copies", kDeviceCopies},    {"sets", kDeviceSets},   {"calls", kDeviceCalls},
        {"waits", kDeviceWaits},      {"times", kDeviceTimes}, {"driver_calls", kDeviceDriverCalls},
        {"overhead", kDeviceOverhead}};
    if (const std::uint32_t* const bits = find_word(kActivities, word)) return *bits;
    reject("unknown device activity", word,
           "; expected kernels, copies, sets, calls, driver_calls, waits, overhead, times, default or all");
}

// ---- the text of a member, by its type

void read(bool& value, OptionForm, std::string_view text) {
    static constexpr Word<bool> kSwitch[] = {{"", true},   {"1", true},    {"on", true}, {"yes", true},
                                             {"0", false}, {"off", false}, {"no", false}};
    const bool* const known = find_word(kSwitch, text);
    if (known == nullptr) reject("invalid value", text, ": expected on or off");
    value = *known;
}

void read(std::string& value, OptionForm, std::string_view text) {
    value = text;
}

void read(Policy& value, OptionForm, std::string_view text) {
    static constexpr Word<Policy> kPolicies[] = {
        {"stop", Policy::Stop}, {"drop", Policy::Drop}, {"ring", Policy::Ring}};
    const Policy* const known = find_word(kPolicies, text);
    if (known == nullptr) reject("invalid value", text, ": expected stop, drop or ring");
    value = *known;
}

void read(Threads& value, OptionForm, std::string_view text) {
    if (text != "all" && text != "tasks") reject("invalid value", text, ": expected all or tasks");
    value = text == "all" ? Threads::All : Threads::Tasks;
}

void read(ScopeSet& value, OptionForm, std::string_view text) {
    std::uint32_t bits = 0;
    each_word(text, [&](std::string_view word) { bits |= scope_bits(word); });
    value = ScopeSet::from_bits(bits);
}

void read(std::vector<std::string>& values, OptionForm form, std::string_view text) {
    if (form == OptionForm::Patterns) {
        if (const char* const fault = call_pattern_error(text))
            reject("the pattern", text, std::string(" ") + fault);
        values.emplace_back(text);
        return;
    }
    values.clear();
    each_word(text, [&](std::string_view name) {
        if (name.empty()) reject("invalid list", text, ": expected names separated by '|'");
        values.emplace_back(name);
    });
}

template <std::unsigned_integral Number>
void read(Number& value, OptionForm form, std::string_view text) {
    if (form == OptionForm::Activities) {
        value = parse_device_activities(std::string(text));
    } else if (form == OptionForm::Size) {
        value = static_cast<Number>(parse_bytes(text));
    } else if (form == OptionForm::Seconds) {
        value = static_cast<Number>(parse_time(text));
    } else {
        value = static_cast<Number>(parse_number(text, std::numeric_limits<Number>::max()));
    }
}

const SessionOption* find_key(std::string_view key) {
    for (const SessionOption& option : kSessionOptions) {
        if (!key.empty() && key == option.key) return &option;
    }
    return nullptr;
}

[[noreturn]] void reject_entry(const std::string& entry) {
    std::string keys;
    for (const SessionOption& option : kSessionOptions) {
        if (*option.key != '\0') keys += std::string(option.key) + "=, ";
    }
    throw Error("'" + entry + "': expected " + keys + "or c_calls=");
}

}  // namespace

std::uint32_t parse_device_activities(const std::string& names) {
    std::uint32_t bits = 0;
    each_word(names, [&](std::string_view word) { bits |= activity_bits(word); });
    return bits;
}

void set_option(SessionOptions& options, const SessionOption& option, std::string_view text) {
    option.visit(options, [&](auto& value) { read(value, option.form, text); });
}

SessionOptions parse_options(std::string_view text, bool auto_c_calls) {
    SessionOptions options;
    bool c_calls = true;
    for (const std::string& entry : split_entries(text)) {
        if (entry.empty()) continue;
        const std::size_t equals = std::min(entry.find('='), entry.size());
        const std::string key = entry.substr(0, equals);
        const std::string value = entry.substr(std::min(equals + 1, entry.size()));
        const SessionOption* const option = find_key(key);
        if (key == "tree") continue;  // read by process_identity.cpp
        if (option == nullptr && key != "c_calls") reject_entry(entry);
        try {
            if (option != nullptr) {
                set_option(options, *option, value);
            } else if (value == "auto") {
                c_calls = auto_c_calls;
            } else {
                read(c_calls, OptionForm::Usual, value);
            }
        } catch (const Error& error) {
            throw Error(key + ": " + error.what());
        }
    }
    if (options.with_stack && !c_calls) {
        const std::uint32_t bits = options.scopes.empty() ? ScopeSet::all().bits() : options.scopes.bits();
        options.scopes = ScopeSet::from_bits(bits & ~(1u << static_cast<unsigned>(Scope::CFunction)));
    }
    return options;
}

std::string option_entry(std::string_view key, std::string_view value) {
    std::string entry = std::string(key) + "=";
    for (const char c : value) {
        if (c == ',' || c == '\\') entry += '\\';
        entry += c;
    }
    return entry;
}

EnvironmentRank environment_rank_and_size() noexcept {
    const auto number = [](const char* name) {
        const std::string text = environment_text(name);
        int value = -1;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc() && end == text.data() + text.size() ? value : -1;
    };
    struct Launcher {
        const char *rank, *size;
    };
    // A launcher that was started by another one comes first: torchrun or mpirun in a Slurm job.
    constexpr Launcher kLaunchers[] = {{"RANK", "WORLD_SIZE"},
                                       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                       {"PMI_RANK", "PMI_SIZE"},
                                       {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                       {"SLURM_PROCID", "SLURM_NTASKS"}};
    for (const Launcher& launcher : kLaunchers) {
        const EnvironmentRank own{number(launcher.rank), number(launcher.size)};
        if (own.rank >= 0 && own.size > 1 && own.rank < own.size) return own;
        // Some programs are started with their rank only.
        const bool has_size = !environment_text(launcher.size).empty();
        if (launcher.rank == kLaunchers[0].rank && own.rank >= 0 && !has_size) return {own.rank, 0};
    }
    return {};
}

int environment_rank() noexcept {
    return environment_rank_and_size().rank;
}

std::string path_of_rank(const std::string& path, int rank) {
    if (rank < 0 || path.empty()) return path;
    const std::string part = ".rank" + std::to_string(rank);
    const bool has_it = path.ends_with(part) || path.find(part + ".") != std::string::npos;
    return has_it ? path : insert_before_suffix(path, part);
}

std::size_t detail::end_of_pattern_set(std::string_view text, std::size_t at) noexcept {
    std::size_t first = at + 1;
    if (first < text.size() && text[first] == '!') ++first;
    return first < text.size() ? text.find(']', first + 1) : std::string_view::npos;
}

const char* call_pattern_error(std::string_view text) noexcept {
    if (text.empty()) return "is empty";
    if (text.find('\0') != std::string_view::npos) return "contains a NUL character";
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '[') continue;
        i = detail::end_of_pattern_set(text, i);
        if (i == std::string_view::npos) return "has an unclosed '['";
    }
    return nullptr;
}

}  // namespace marey

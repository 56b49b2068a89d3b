// site_groups.cpp: parses the names that the tracer gives to Python calls: "json/decoder.py(332):
// JSONDecoder.decode" and "math.sqrt". The site's file is the full path, or the module of the C function.
#include "analyze/averages/site_groups.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>

#include <marey/averages.h>

namespace marey {
namespace {

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

enum class Origin { Program, Library, StandardLibrary };

Origin origin_of(std::string_view file) {
    if (has(file, "/site-packages/") || has(file, "/dist-packages/")) return Origin::Library;
    if (file.starts_with("<frozen ") || has(file, "/lib/python3")) return Origin::StandardLibrary;
    return Origin::Program;
}

std::string_view label(Origin origin) {
    switch (origin) {
        case Origin::Library:
            return " (library)";
        case Origin::StandardLibrary:
            return " (standard library)";
        case Origin::Program:
            break;
    }
    return "";
}

/// The path of a site's file, as in the names of its functions. Imports ("import shop.load") have only the
/// full path.
std::string_view path_of(const Trace& trace, const SiteInfo& site) {
    const std::string_view name = trace.string(site.name);
    if (const PythonName parsed = parse_python_name(name); !parsed.path.empty()) return parsed.path;
    const std::string_view file = trace.string(site.file);
    std::string tail(name.substr(name.find(' ') + 1));
    std::replace(tail.begin(), tail.end(), '.', '/');
    const std::size_t place = file.rfind("/" + tail);
    return place == file.npos ? file : file.substr(place + 1);
}

/// "/usr/lib/python3.11/json/decoder.py" becomes "json/decoder.py".
std::string_view without_library_folder(std::string_view path) {
    for (const std::string_view folder : {"/site-packages/", "/dist-packages/", "/lib/python3"}) {
        const std::size_t place = path.rfind(folder);
        if (place == path.npos) continue;
        const std::size_t end = path.find('/', place + folder.size() - 1);
        if (end != path.npos) return path.substr(end + 1);
    }
    return path;
}

std::string python_group(const Trace& trace, const SiteInfo& site, GroupBy by) {
    const std::string_view path = path_of(trace, site);
    const Origin origin = origin_of(site.file != 0 ? trace.string(site.file) : path);
    switch (by) {
        case GroupBy::Function:
            return std::string(path) + ": " +
                   std::string(parse_python_name(trace.string(site.name)).function);
        case GroupBy::Line:
            return std::string(path) + ":" + std::to_string(site.line);
        case GroupBy::File:
            return std::string(path);
        case GroupBy::Module:
            return module_of(path) + std::string(label(origin));
        case GroupBy::Package: {
            if (origin == Origin::Program)  // code created at run time has no file: "<string>"
                return path.starts_with('<') ? std::string(path) : "(program)";
            if (origin == Origin::StandardLibrary) return "(standard library)";
            const std::string module = module_of(path);
            return module.substr(0, module.find('.'));
        }
        case GroupBy::Process:
        case GroupBy::Name:
            break;
    }
    return std::string(trace.string(site.name));
}

/// Only the module of a C function is known.
std::string c_group(const Trace& trace, const SiteInfo& site, GroupBy by) {
    const std::string module(trace.string(site.file));
    if (by == GroupBy::Name || by == GroupBy::Function || module.empty())
        return std::string(trace.string(site.name));
    if (by == GroupBy::Package && !module.starts_with('('))
        return module.substr(0, module.find('.')) + " (C)";
    return module + " (C)";
}

}  // namespace

PythonName parse_python_name(std::string_view name) {
    constexpr std::string_view kEnd = "): ";
    const std::size_t end = name.find(kEnd);
    const std::size_t line = end == name.npos ? end : name.rfind('(', end);
    if (line == name.npos) return {{}, name};
    return {name.substr(0, line), name.substr(end + kEnd.size())};
}

std::string function_first(std::string_view name) {
    const auto [path, function] = parse_python_name(name);
    if (path.empty()) return std::string(name);
    const std::string_view line = name.substr(path.size() + 1, name.find(')', path.size()) - path.size() - 1);
    return std::string(function) + " (" + std::string(path) + ":" + std::string(line) + ")";
}

std::string module_of(std::string_view path) {
    constexpr std::string_view kFrozen = "<frozen ";
    constexpr std::string_view kPackage = "/__init__";
    if (path.starts_with(kFrozen) && path.ends_with('>'))
        return std::string(path.substr(kFrozen.size(), path.size() - kFrozen.size() - 1));
    path = without_library_folder(path);
    if (path.starts_with('/') || !path.ends_with(".py")) return std::string(path);
    path.remove_suffix(3);
    if (path.ends_with(kPackage)) path.remove_suffix(kPackage.size());
    std::string module(path);
    std::replace(module.begin(), module.end(), '/', '.');
    return module;
}

bool is_program_file(std::string_view file) {
    return origin_of(file) == Origin::Program;
}

bool is_import_name(Scope scope, std::string_view name) noexcept {
    return scope == Scope::PythonFunction && name.starts_with("import ");
}

std::string_view group_name(std::string_view name) noexcept {
    return name.starts_with("ProfilerStep#") ? "ProfilerStep*" : name;
}

std::string site_group(const Trace& trace, const SiteInfo& site, GroupBy by) {
    if (by == GroupBy::Process) return "";  // all sites of a process belong to one group
    if (site.scope == Scope::CFunction) return c_group(trace, site, by);
    if (site.scope == Scope::PythonFunction) return python_group(trace, site, by);
    std::string name(group_name(trace.string(site.name)));
    if (site.file == 0 || by == GroupBy::Name || by == GroupBy::Function) return name;
    // Include paths spell a file in several ways: "src/../include/queue.h".
    const std::string file = std::filesystem::path(trace.string(site.file)).lexically_normal().string();
    return by == GroupBy::Line ? file + ":" + std::to_string(site.line) : file;
}

std::span<const std::int64_t> input_extents(const TraceData& data, const Argument& input) noexcept {
    if (input.kind != ValueKind::Array || input.array >= data.arrays.size()) return {};
    const ArrayInfo& array = data.arrays[input.array];
    const std::size_t known = data.array_extents.size();
    if (!array.is_defined || array.first_extent > known || array.dimensions > known - array.first_extent)
        return {};
    return {data.array_extents.data() + array.first_extent, array.dimensions};
}

std::uint64_t ShapeGroups::read(std::uint32_t base, std::uint32_t first, std::uint32_t count) {
    constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15u;
    std::uint64_t hash = (base + std::uint64_t{1}) * kFactor;
    current_size_ = 0;
    for (std::uint32_t i = first; i < first + count; ++i) {
        if (data_.arguments[i].role != ArgumentRole::Input) continue;
        const std::span<const std::int64_t> extents = input_extents(data_, data_.arguments[i]);
        if (current_size_ + extents.size() >= current_.size())
            current_.resize(2 * (current_size_ + extents.size() + 1));
        const auto put = [&](std::int64_t value) {
            current_[current_size_++] = value;
            hash = (std::rotl(hash, 5) ^ static_cast<std::uint64_t>(value)) * kFactor;
        };
        put(static_cast<std::int64_t>(extents.size()));
        for (const std::int64_t extent : extents) put(extent);
    }
    return hash ^ hash >> 32;
}

std::uint32_t ShapeGroups::find(std::uint32_t base, std::uint32_t first, std::uint32_t count) {
    const std::uint64_t wanted = read(base, first, count);
    std::size_t place = wanted & (entries_.size() - 1);
    for (; entries_[place].group != kFree; place = (place + 1) & (entries_.size() - 1)) {
        const Entry& entry = entries_[place];
        if (entry.hash == wanted && entry.base == base && entry.size == current_size_ &&
            std::equal(current_.begin(), current_.begin() + static_cast<std::ptrdiff_t>(current_size_),
                       shapes_.begin() + static_cast<std::ptrdiff_t>(entry.first)))
            return entry.group;
    }
    entries_[place] = {wanted, base, used_, shapes_.size(), current_size_};
    shapes_.insert(shapes_.end(), current_.begin(),
                   current_.begin() + static_cast<std::ptrdiff_t>(current_size_));
    ++used_;
    if (used_ * std::size_t{2} > entries_.size()) grow();
    return used_ - 1;
}

void ShapeGroups::grow() {
    std::vector<Entry> larger(entries_.size() * 2);
    for (const Entry& entry : entries_) {
        if (entry.group == kFree) continue;
        std::size_t place = entry.hash & (larger.size() - 1);
        while (larger[place].group != kFree) place = (place + 1) & (larger.size() - 1);
        larger[place] = entry;
    }
    entries_.swap(larger);
}

std::string input_shapes_text(const Trace& trace, std::span<const Argument> arguments) {
    std::string text = "[";
    for (const Argument& argument : arguments) {
        if (argument.role != ArgumentRole::Input) continue;
        text += text.size() > 1 ? ", [" : "[";
        bool is_first = true;
        for (const std::int64_t extent : input_extents(trace.data(), argument)) {
            if (!is_first) text += ", ";
            is_first = false;
            char digits[24];
            text.append(digits, std::to_chars(digits, digits + sizeof digits, extent).ptr);
        }
        text += ']';
    }
    return text += ']';
}

}  // namespace marey

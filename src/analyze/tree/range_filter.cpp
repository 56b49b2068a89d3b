// range_filter.cpp: removes ranges from a trace and gives the ranges inside them to the range around them;
// makes each Python import one range.
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <marey/range_filter.h>

#include "analyze/averages/site_groups.h"
#include "analyze/name_slots.h"
#include "trace/row_selection.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

constexpr std::string_view kImport = "import ";
// For traces of other tools, in which only the code of a module has its name.
constexpr const char* kCompiledModule = "import (C module)";
constexpr const char* kUnknownModule = "import (unknown module)";

enum class FrameKind : std::uint8_t { Other, CFunction, ModuleCode, Importlib, ImportlibForC, Import };

/// The name of the module that a file contains; empty if it is not a module.
std::string imported_module(std::string_view path) {
    std::string module = module_of(path);
    if (module.starts_with('<')) return "";  // code made at run time: "<string>"
    if (module.find('/') == module.npos) return module;
    // A file outside all known folders: a package can have others.
    module.erase(0, module.rfind('/') + 1);
    return module.ends_with(".py") ? module.substr(0, module.size() - 3) : module;
}

FrameKind frame_kind(const SiteInfo& site, std::string_view name) {
    if (site.scope == Scope::CFunction) return FrameKind::CFunction;
    if (site.scope != Scope::PythonFunction) return FrameKind::Other;
    const auto [path, function] = parse_python_name(name);
    if (path.starts_with("<frozen importlib._bootstrap") || path == "<frozen zipimport>") {
        if (function == "_find_and_load") return FrameKind::Import;
        const bool is_for_c =
            function == "ExtensionFileLoader.create_module" || function == "BuiltinImporter.create_module";
        return is_for_c ? FrameKind::ImportlibForC : FrameKind::Importlib;
    }
    return function == "<module>" && !imported_module(path).empty() ? FrameKind::ModuleCode
                                                                    : FrameKind::Other;
}

class ImportFolder {
  public:
    explicit ImportFolder(TraceData& data) : data_(data) {
        for (const SiteInfo& site : data.sites) kinds_.push_back(frame_kind(site, data.strings[site.name]));
    }

    /// Names the outermost range of each import "import NAME", and returns the ranges that are parts of it:
    /// the frames of importlib, the C functions that they call, and the module's code itself. They are
    /// sorted.
    std::vector<Row> fold() {
        for (const TrackInfo& track : data_.tracks) {
            const Row end = track.first_range + track.range_count;
            for (Row row = track.first_range; row < end; ++row) {
                if (kinds_[data_.range_site[row]] >= FrameKind::Importlib) row = add_all_inside(row, end) - 1;
            }
        }
        name_imports();
        return std::move(parts_);
    }

  private:
    static constexpr std::size_t kNoImport = ~std::size_t{0};
    static constexpr std::uint32_t kNoSite = ~std::uint32_t{0};

    struct Import {
        Row row;
        std::uint32_t module = kNoSite;  ///< the site of its code
        bool is_for_c = false;
    };
    /// An open range, from the outermost frame of importlib on.
    struct Frame {
        std::size_t import = kNoImport;  ///< whose code has not been reached between it and this range
        bool is_part = false;            ///< belongs to importlib
    };

    /// Adds a range that no frame of importlib is around, and those inside it. Returns the row after them.
    Row add_all_inside(Row outermost, Row end) {
        const std::uint32_t depth = data_.range_depth[outermost];
        frames_.clear();
        Row row = outermost;
        do {
            frames_.resize(data_.range_depth[row] - depth);
            add(row, kinds_[data_.range_site[row]]);
            ++row;
        } while (row < end && data_.range_depth[row] > depth);
        return row;
    }

    void add(Row row, FrameKind kind) {
        Frame frame = frames_.empty() ? Frame() : frames_.back();
        const bool is_in_importlib = frame.is_part;
        frame.is_part = kind >= FrameKind::Importlib || (is_in_importlib && kind == FrameKind::CFunction);
        bool is_removed = frame.is_part;
        if (kind == FrameKind::Import) {
            frame.import = imports_.size();
            imports_.push_back({row});
            is_removed = false;
        } else if (kind == FrameKind::ModuleCode && frame.import != kNoImport) {
            Import& import = imports_[std::exchange(frame.import, kNoImport)];
            const bool is_first = import.module == kNoSite;
            if (is_first) import.module = data_.range_site[row];
            is_removed = is_first && is_in_importlib;  // not if a loader of the program runs it
        } else if (kind == FrameKind::ImportlibForC && frame.import != kNoImport) {
            imports_[frame.import].is_for_c = true;
        }
        if (is_removed) parts_.push_back(row);
        frames_.push_back(frame);
    }

    void name_imports() {
        std::unordered_map<std::string, std::uint32_t> sites;
        for (const Import& import : imports_) {
            std::uint32_t& site = data_.range_site[import.row];
            const auto [place, is_new] =
                sites.try_emplace(name_of(import), static_cast<std::uint32_t>(data_.sites.size()));
            if (is_new) {
                SiteInfo info = data_.sites[site];
                info.file = info.file != 0 ? info.file : new_string(file_of(info));
                info.name = new_string(place->first);
                info.overload = 0;
                data_.sites.push_back(info);
            }
            site = place->second;
            if (import.module == kNoSite) continue;  // filtered, compiled, or in another import of it
            data_.sites[site].file = data_.sites[import.module].file;
            data_.sites[site].line = data_.sites[import.module].line;
        }
    }

    StringId new_string(std::string text) {
        data_.strings.push_back(std::move(text));
        return static_cast<StringId>(data_.strings.size() - 1);
    }
    std::string file_of(const SiteInfo& call) const {
        return std::string(parse_python_name(data_.strings[call.name]).path);
    }

    std::string name_of(const Import& import) const {
        const SiteInfo& call = data_.sites[data_.range_site[import.row]];
        if (call.overload != 0) return std::string(kImport) + data_.strings[call.overload];
        if (import.module == kNoSite) return import.is_for_c ? kCompiledModule : kUnknownModule;
        const std::string& name = data_.strings[data_.sites[import.module].name];
        return std::string(kImport) + imported_module(parse_python_name(name).path);
    }

    TraceData& data_;
    std::vector<FrameKind> kinds_;  ///< by site
    std::vector<Frame> frames_;
    std::vector<Import> imports_;
    std::vector<Row> parts_;
};

/// The ranges for which is_removed(row, whether the range around it hides it), in order.
std::vector<Row> rows_inside(const TraceData& data, auto is_removed, auto hides) {
    std::vector<Row> rows;
    std::vector<bool> hides_at;  // by depth: whether the open range hides the ranges inside it
    for (const TrackInfo& track : data.tracks) {
        hides_at.clear();
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            hides_at.resize(data.range_depth[row]);
            const bool is_inside = !hides_at.empty() && hides_at.back();
            const bool is_gone = is_removed(row, is_inside);
            if (is_gone) rows.push_back(row);
            hides_at.push_back(hides(row, is_inside, is_gone));
        }
    }
    return rows;
}

/// The ranges inside folded imports.
std::vector<Row> rows_in_imports(const TraceData& data) {
    const auto is_import = [&](Row row) {
        const SiteInfo& site = data.sites[data.range_site[row]];
        return is_import_name(site.scope, data.strings[site.name]);
    };
    return rows_inside(
        data, [](Row, bool is_inside) { return is_inside; },
        [&](Row row, bool is_inside, bool) { return is_inside || is_import(row); });
}

/// Adds sorted rows to others.
void add_rows(std::vector<Row>& rows, const std::vector<Row>& others) {
    std::vector<Row> all;
    std::set_union(rows.begin(), rows.end(), others.begin(), others.end(), std::back_inserter(all));
    rows = std::move(all);
}

/// Whether a trace may contain imports that are not folded.
bool has_import_frames(const Trace& trace) {
    return std::ranges::any_of(trace.sites(), [&](const SiteInfo& site) {
        return frame_kind(site, trace.string(site.name)) >= FrameKind::Importlib;
    });
}

bool matches_any(const TraceData& data, const SiteInfo& site, const std::vector<std::string>& patterns) {
    const std::string& name = data.strings[site.name];
    const std::string& file = data.strings[site.file];
    const std::string function(parse_python_name(name).function);
    return std::ranges::any_of(patterns, [&](const std::string& pattern) {
        const auto matches = [&](const std::string& text) {
            return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
        };
        return matches(name) || matches(function) || (!file.empty() && matches(file));
    });
}

/// Whether one of the patterns matches each site.
std::vector<bool> matching_sites(const TraceData& data, const std::vector<std::string>& patterns) {
    std::vector<bool> matching(data.sites.size());
    if (patterns.empty()) return matching;
    for (std::size_t site = 0; site < matching.size(); ++site)
        matching[site] = matches_any(data, data.sites[site], patterns);
    return matching;
}

bool has_any(const std::vector<bool>& flags) {
    return std::ranges::find(flags, true) != flags.end();
}

bool was_running(const TraceData& data, Row row) {
    return (data.range_flags[row] & kBeganBefore) != 0 &&
           data.sites[data.range_site[row]].scope == Scope::PythonFunction;
}

bool has_running(const TraceData& data) {
    for (Row row = 0; row < data.range_site.size(); ++row) {
        if (was_running(data, row)) return true;
    }
    return false;
}

/// The ranges of sites that are hidden, and those inside them.
std::vector<Row> hidden_rows(const TraceData& data, const std::vector<bool>& hidden) {
    std::vector<bool> is_cell(data.sites.size());
    for (std::size_t site = 0; site < is_cell.size(); ++site)
        is_cell[site] = data.strings[data.sites[site].name].starts_with("In[");
    return rows_inside(
        data,
        [&](Row row, bool is_inside) {
            const std::uint32_t site = data.range_site[row];
            if ((data.range_flags[row] & kBeganBefore) != 0) return false;
            return hidden[site] || (is_inside && !is_cell[site]);
        },
        [&](Row row, bool, bool is_gone) {
            // A call that was running hides only the calls that it makes itself: an event loop runs others,
            // too.
            return (data.range_flags[row] & kBeganBefore) != 0 ? hidden[data.range_site[row]] : is_gone;
        });
}

/// Adds the ranges that the filter excludes to the sorted rows `removed`.
void add_excluded(const TraceData& data, const RangeFilter& filter, std::vector<Row>& removed) {
    const std::vector<bool> excluded = matching_sites(data, filter.exclude);
    std::vector<Row> others;
    for (Row row = 0; row < data.range_site.size(); ++row) {
        if (excluded[data.range_site[row]] || (filter.exclude_running && was_running(data, row)))
            others.push_back(row);
    }
    add_rows(removed, others);
}

}  // namespace

std::vector<bool> matching_sites(const Trace& trace, const std::vector<std::string>& patterns) {
    return matching_sites(trace.data(), patterns);
}

Trace filter_ranges(Trace trace, const RangeFilter& filter) {
    const bool has_imports = filter.fold_imports && has_import_frames(trace);
    const bool removes_running = filter.exclude_running && has_running(trace.data());
    const std::vector<bool> hidden = matching_sites(trace.data(), filter.hide);
    if (!has_imports && !removes_running && !filter.flatten_imports && !has_any(hidden) &&
        !has_any(matching_sites(trace.data(), filter.exclude)))
        return trace;
    const std::shared_ptr<TraceData> data = changeable_data(std::move(trace));
    std::vector<Row> removed;
    if (has_any(hidden)) {  // before folding renames sites
        removed = hidden_rows(*data, hidden);
        remove_ranges(*data, removed);
        removed.clear();
    }
    if (has_imports) removed = ImportFolder(*data).fold();
    if (filter.flatten_imports) add_rows(removed, rows_in_imports(*data));
    if (!filter.exclude.empty() || removes_running) add_excluded(*data, filter, removed);
    remove_ranges(*data, removed);
    return Trace(data);
}

std::int64_t import_time_ns(const Trace& trace) {
    std::vector<std::uint8_t> is_import;  // by site; bytes, because every range is looked up
    for (const SiteInfo& site : trace.sites())
        is_import.push_back(is_import_name(site.scope, trace.string(site.name)) ? 1 : 0);
    if (std::ranges::find(is_import, 1) == is_import.end()) return 0;
    const RangeColumns ranges = trace.ranges();
    const WindowClip clip(trace);
    struct Span {
        Row process;
        std::int64_t start_ns, end_ns;
    };
    std::vector<Span> spans;
    for (const TrackInfo& track : trace.tracks()) {
        const Row end = track.first_range + track.range_count;
        for (Row row = track.first_range; row < end; ++row) {
            if (is_import[ranges.site[row]] == 0) continue;
            const std::int64_t start_ns = std::max(ranges.start_ns[row], clip.start_ns);
            spans.push_back({trace.threads()[track.thread].process, start_ns,
                             start_ns + clip.duration(ranges.start_ns[row], ranges.duration_ns[row])});
            const std::uint32_t depth = ranges.depth[row];
            while (row + 1 < end && ranges.depth[row + 1] > depth) ++row;  // the ranges inside
        }
    }
    // Threads import at the same time.
    std::ranges::sort(spans, {}, [](const Span& a) { return std::tie(a.process, a.start_ns); });
    std::int64_t total = 0;
    for (std::size_t i = 0; i < spans.size();) {
        const Row process = spans[i].process;
        for (std::int64_t end_ns = spans[i].start_ns; i < spans.size() && spans[i].process == process; ++i) {
            total += std::max<std::int64_t>(spans[i].end_ns - std::max(end_ns, spans[i].start_ns), 0);
            end_ns = std::max(end_ns, spans[i].end_ns);
        }
    }
    return total;
}

}  // namespace marey

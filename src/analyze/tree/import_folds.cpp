// import_folds.cpp: finds imports by the frames of importlib. Each import is one call of _find_and_load,
// which finds the module, loads it and runs its code.
#include "analyze/tree/import_folds.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <marey/range_filter.h>

#include "analyze/averages/site_groups.h"

namespace marey {
namespace {

constexpr std::string_view kImport = "import ";
// Nothing records the name of a module without Python code.
constexpr const char* kCompiledModule = "import (C module)";
constexpr const char* kNothingLoaded = "import (nothing loaded)";

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
            const bool has_code = import.module != kNoSite;
            const std::string name = has_code          ? module_name(import.module)
                                     : import.is_for_c ? kCompiledModule
                                                       : kNothingLoaded;
            const auto [place, is_new] =
                sites.try_emplace(name, static_cast<std::uint32_t>(data_.sites.size()));
            if (is_new) {
                SiteInfo info = data_.sites[has_code ? import.module : site];
                info.name = static_cast<StringId>(data_.strings.size());
                data_.strings.push_back(name);
                data_.sites.push_back(info);
            }
            site = place->second;
        }
    }

    std::string module_name(std::uint32_t site) const {
        const std::string& name = data_.strings[data_.sites[site].name];
        return std::string(kImport) + imported_module(parse_python_name(name).path);
    }

    TraceData& data_;
    std::vector<FrameKind> kinds_;  ///< by site
    std::vector<Frame> frames_;
    std::vector<Import> imports_;
    std::vector<Row> parts_;
};

}  // namespace

bool has_import_frames(const Trace& trace) {
    return std::any_of(trace.sites().begin(), trace.sites().end(), [&](const SiteInfo& site) {
        return frame_kind(site, trace.string(site.name)) >= FrameKind::Importlib;
    });
}

std::vector<Row> fold_imports(TraceData& data) {
    return ImportFolder(data).fold();
}

std::int64_t import_time_ns(const Trace& trace) {
    std::vector<std::uint8_t> is_import;  // by site; bytes, because every range is looked up
    for (const SiteInfo& site : trace.sites())
        is_import.push_back(
            site.scope == Scope::PythonFunction && trace.string(site.name).starts_with(kImport) ? 1 : 0);
    std::int64_t total = 0;
    if (std::find(is_import.begin(), is_import.end(), 1) == is_import.end()) return total;
    const RangeColumns ranges = trace.ranges();
    for (const TrackInfo& track : trace.tracks()) {
        const Row end = track.first_range + track.range_count;
        for (Row row = track.first_range; row < end; ++row) {
            if (is_import[ranges.site[row]] == 0) continue;
            total += trace.clipped_duration_ns(row);
            const std::uint32_t depth = ranges.depth[row];
            while (row + 1 < end && ranges.depth[row + 1] > depth) ++row;  // the ranges inside
        }
    }
    return total;
}

}  // namespace marey

// sites.h: names and categories of a Chrome trace as sites.
#pragma once

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include <marey/trace.h>

#include "analyze/events/event_categories.h"
#include "base/text_hash.h"
#include "trace/trace_assembler.h"

namespace marey {

/// The meaning of a category for its events.
struct CategoryMeaning {
    enum class Place : std::uint8_t { Host, Runtime, Device };
    using enum Place;
    Scope scope = Scope::User;
    Place place = Place::Host;
    DeviceType device = DeviceType::Cuda;
    bool is_sampled = false;  ///< made of samples: the times are estimates
    bool is_known = false;    ///< has been looked up
};

struct NamedCategory {
    std::string_view category;
    Scope scope;
    CategoryMeaning::Place place = CategoryMeaning::Place::Host;
    DeviceType device = DeviceType::Cuda;
    bool is_sampled = false;
};
inline constexpr NamedCategory kNamedCategories[] = {
    {"cpu_op", Scope::Function},
    {"Operator", Scope::Function},
    {"user_annotation", Scope::User},
    {"python_function", Scope::PythonFunction},
    {"FEE", Scope::PythonFunction},  // VizTracer: function entry and exit
    {"py-spy", Scope::Function, CategoryMeaning::Host, DeviceType::Cuda, true},
    {"cuda_runtime", Scope::DeviceRuntime, CategoryMeaning::Runtime},
    {"cuda_driver", Scope::DeviceRuntime, CategoryMeaning::Runtime},
    {"hip_runtime", Scope::DeviceRuntime, CategoryMeaning::Runtime},
    {"xpu_runtime", Scope::DeviceRuntime, CategoryMeaning::Runtime},
    {"xpu_driver", Scope::DeviceRuntime, CategoryMeaning::Runtime},
    {"mtia_runtime", Scope::DeviceRuntime, CategoryMeaning::Runtime},
    {"privateuse1_runtime", Scope::DeviceRuntime, CategoryMeaning::Runtime},
    {"privateuse1_driver", Scope::DeviceRuntime, CategoryMeaning::Runtime},
    {"Runtime", Scope::DeviceRuntime, CategoryMeaning::Runtime},
    {"kernel", Scope::Device, CategoryMeaning::Device},
    {"gpu_memcpy", Scope::Device, CategoryMeaning::Device},
    {"gpu_memset", Scope::Device, CategoryMeaning::Device},
    {"cuda_sync", Scope::Device, CategoryMeaning::Device},
    {"cuda_event", Scope::Device, CategoryMeaning::Device},
    {"gpu_user_annotation", Scope::User, CategoryMeaning::Device},
    {"Kernel", Scope::Device, CategoryMeaning::Device},
    {"Memcpy", Scope::Device, CategoryMeaning::Device},
    {"Memset", Scope::Device, CategoryMeaning::Device},
};

/// The properties that distinguish sites of a Chrome trace; 0: not given.
struct ChromeSiteKey {
    StringId name = 0;
    StringId category = 0;
    // Members that our exporter adds.
    StringId at = 0;
    StringId scope = 0;
    StringId overload = 0;
    StringId mangled = 0;
    friend bool operator==(const ChromeSiteKey&, const ChromeSiteKey&) noexcept = default;
};

class ImportedSites {
  public:
    explicit ImportedSites(TraceAssembler& assembler) : assembler_(assembler) {}

    const CategoryMeaning& meaning(StringId category) {
        if (category >= meanings_.size()) meanings_.resize(category + category / 2 + 64);
        CategoryMeaning& meaning = meanings_[category];
        if (meaning.is_known) return meaning;
        meaning.is_known = true;
        const std::string& text = assembler_.text(category);
        for (const NamedCategory& named : kNamedCategories) {
            if (named.category == text)
                meaning = {named.scope, named.place, text.starts_with("xpu") ? DeviceType::Xpu : named.device,
                           named.is_sampled, true};
        }
        return meaning;
    }
    /// Returns a row of the site table.
    std::uint32_t site(const ChromeSiteKey& key) {
        const auto [place, is_new] = known_.try_emplace(key);
        if (is_new) place->second = make(key);
        return place->second;
    }

  private:
    static Scope scope_of_name(std::string_view name, Scope otherwise) {
        for (int i = 0; i < kScopeCount; ++i) {
            if (name == scope_name(static_cast<Scope>(i))) return static_cast<Scope>(i);
        }
        return otherwise;
    }

    struct Hash {
        std::size_t operator()(const ChromeSiteKey& key) const noexcept {
            return mix_hash(mix_hash(std::uint64_t{key.name} << 32 | key.category, key.at) ^ key.mangled,
                            std::uint64_t{key.scope} << 32 | key.overload);
        }
    };
    std::uint32_t make(const ChromeSiteKey& key) {
        const CategoryMeaning meaning = this->meaning(key.category);
        SiteInfo info;
        if (key.mangled != 0) {
            info.name = key.name;
            info.raw_name = key.mangled;
        } else {
            std::string_view text = assembler_.text(key.name);
            if (key.overload != 0) {  // follows the name, after a dot
                const std::string_view overload = assembler_.text(key.overload);
                const std::size_t rest = text.size() - std::min(text.size(), overload.size() + 1);
                if (text.ends_with(overload) && text.substr(rest).starts_with('.'))
                    text = text.substr(0, rest);
            }
            info = assembler_.named(std::string(text));
        }
        const std::string& name = assembler_.text(info.name);
        const std::string& category = assembler_.text(key.category);
        info.scope = meaning.scope;
        if (meaning.scope == Scope::User && name.starts_with("ProfilerStep#")) info.scope = Scope::Step;
        if (key.scope != 0) info.scope = scope_of_name(assembler_.text(key.scope), info.scope);
        const bool on_device = meaning.place == CategoryMeaning::Device;
        if (!category.empty() && category != chrome_category(info.scope, name, on_device))
            info.category = key.category;
        info.overload = key.overload;
        if (key.at != 0) {
            std::string_view file = assembler_.text(key.at);
            const std::size_t colon = file.rfind(':');
            if (colon != file.npos) {
                const char* const end = file.data() + file.size();
                const auto [stop, error] = std::from_chars(file.data() + colon + 1, end, info.line);
                if (error == std::errc() && stop == end && colon + 1 < file.size()) {
                    file = file.substr(0, colon);
                } else {
                    info.line = 0;
                }
            }
            info.file = assembler_.string(std::string(file));
        }
        return assembler_.site(info);
    }

    TraceAssembler& assembler_;
    std::vector<CategoryMeaning> meanings_;  ///< by string
    std::unordered_map<ChromeSiteKey, std::uint32_t, Hash> known_;
};

}  // namespace marey

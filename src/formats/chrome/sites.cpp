// sites.cpp: maps categories of other programs to scopes.
#include "formats/chrome/sites.h"

#include <algorithm>
#include <charconv>

#include "analyze/events/event_categories.h"
#include "base/text_hash.h"

namespace marey {
namespace {

using CategoryPlace = CategoryMeaning::Place;

struct NamedMeaning {
    std::string_view category;
    Scope scope;
    CategoryPlace place = CategoryPlace::Host;
    DeviceType device = DeviceType::Cuda;
    bool is_sampled = false;
};
constexpr NamedMeaning kMeanings[] = {
    {"cpu_op", Scope::Function},
    {"Operator", Scope::Function},
    {"user_annotation", Scope::User},
    {"python_function", Scope::PythonFunction},
    {"FEE", Scope::PythonFunction},  // VizTracer: function entry and exit
    {"py-spy", Scope::Function, CategoryPlace::Host, DeviceType::Cuda, true},
    {"cuda_runtime", Scope::DeviceRuntime, CategoryPlace::Runtime},
    {"cuda_driver", Scope::DeviceRuntime, CategoryPlace::Runtime},
    {"hip_runtime", Scope::DeviceRuntime, CategoryPlace::Runtime},
    {"xpu_runtime", Scope::DeviceRuntime, CategoryPlace::Runtime},
    {"xpu_driver", Scope::DeviceRuntime, CategoryPlace::Runtime},
    {"mtia_runtime", Scope::DeviceRuntime, CategoryPlace::Runtime},
    {"privateuse1_runtime", Scope::DeviceRuntime, CategoryPlace::Runtime},
    {"privateuse1_driver", Scope::DeviceRuntime, CategoryPlace::Runtime},
    {"Runtime", Scope::DeviceRuntime, CategoryPlace::Runtime},
    {"kernel", Scope::Device, CategoryPlace::Device},
    {"gpu_memcpy", Scope::Device, CategoryPlace::Device},
    {"gpu_memset", Scope::Device, CategoryPlace::Device},
    {"cuda_sync", Scope::Device, CategoryPlace::Device},
    {"cuda_event", Scope::Device, CategoryPlace::Device},
    {"gpu_user_annotation", Scope::User, CategoryPlace::Device},
    {"Kernel", Scope::Device, CategoryPlace::Device},
    {"Memcpy", Scope::Device, CategoryPlace::Device},
    {"Memset", Scope::Device, CategoryPlace::Device},
};

Scope scope_of_name(std::string_view name, Scope otherwise) {
    for (int i = 0; i < kScopeCount; ++i) {
        if (name == scope_name(static_cast<Scope>(i))) return static_cast<Scope>(i);
    }
    return otherwise;
}

}  // namespace

const CategoryMeaning& ImportedSites::meaning(StringId category) {
    if (category >= meanings_.size()) meanings_.resize(category + category / 2 + 64);
    CategoryMeaning& meaning = meanings_[category];
    if (meaning.is_known) return meaning;
    meaning.is_known = true;
    const std::string& text = assembler_.text(category);
    for (const NamedMeaning& named : kMeanings) {
        if (named.category == text)
            meaning = {named.scope, named.place, text.starts_with("xpu") ? DeviceType::Xpu : named.device,
                       named.is_sampled, true};
    }
    return meaning;
}

std::uint32_t ImportedSites::site(const ChromeSiteKey& key) {
    std::uint64_t hash = mix_hash(std::uint64_t{key.name} << 32 | key.category, key.at);
    if ((key.scope | key.overload | key.mangled) != 0)
        hash = mix_hash(hash ^ key.mangled, std::uint64_t{key.scope} << 32 | key.overload);
    if (2 * (known_count_ + 1) > known_.size()) grow();
    const std::size_t mask = known_.size() - 1;
    std::size_t slot = hash & mask;
    for (; known_[slot].is_used; slot = (slot + 1) & mask) {
        if (known_[slot].hash == hash && known_[slot].key == key) return known_[slot].site;
    }
    ++known_count_;
    known_[slot] = {key, make(key), true, hash};
    return known_[slot].site;
}

void ImportedSites::grow() {
    std::vector<SiteSlot> old(std::max<std::size_t>(64, 2 * known_.size()));
    old.swap(known_);
    for (const SiteSlot& entry : old) {
        if (!entry.is_used) continue;
        std::size_t slot = entry.hash & (known_.size() - 1);
        while (known_[slot].is_used) slot = (slot + 1) & (known_.size() - 1);
        known_[slot] = entry;
    }
}

std::uint32_t ImportedSites::make(const ChromeSiteKey& key) {
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
            if (text.ends_with(overload) && text.substr(rest).starts_with('.')) text = text.substr(0, rest);
        }
        info = assembler_.named(std::string(text));
    }
    const std::string& name = assembler_.text(info.name);
    const std::string& category = assembler_.text(key.category);
    info.scope = meaning.scope;
    if (meaning.scope == Scope::User && name.starts_with("ProfilerStep#")) info.scope = Scope::Step;
    if (key.scope != 0) info.scope = scope_of_name(assembler_.text(key.scope), info.scope);
    const bool on_device = meaning.place == CategoryPlace::Device;
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

}  // namespace marey

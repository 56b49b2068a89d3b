// sites.h: names and categories of a Chrome trace as sites.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "trace/trace_assembler.h"

namespace marey {

/// The meaning of a category for its events.
struct CategoryMeaning {
    enum class Place : std::uint8_t { Host, Runtime, Device };
    Scope scope = Scope::User;
    Place place = Place::Host;
    DeviceType device = DeviceType::Cuda;
    bool is_sampled = false;  ///< made of samples: the times are estimates
    bool is_known = false;    ///< has been looked up
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

    const CategoryMeaning& meaning(StringId category);
    /// Returns a row of the site table.
    std::uint32_t site(const ChromeSiteKey& key);

  private:
    struct SiteSlot {
        ChromeSiteKey key;
        std::uint32_t site = 0;
        bool is_used = false;
        std::uint64_t hash = 0;
    };
    void grow();
    std::uint32_t make(const ChromeSiteKey& key);

    TraceAssembler& assembler_;
    std::vector<CategoryMeaning> meanings_;  ///< by string
    std::vector<SiteSlot> known_;            ///< size is a power of two, at most half used
    std::size_t known_count_ = 0;
};

}  // namespace marey
